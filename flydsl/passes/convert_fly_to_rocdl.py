"""convert-fly-to-rocdl: pointers, register memory and atoms become LLVM and ROCDL operations.

    func.func @f(%p: !fly.ptr<f32, global>, %i: i32) -> f32 {
      %t = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
      %q = fly.add_offset(%p, %t) : (!fly.ptr<f32, global>, !fly.int_tuple<?>) -> !fly.ptr<f32, global>
      %v = fly.ptr.load(%q) : (!fly.ptr<f32, global>) -> f32
      return %v : f32
    }

becomes

    func.func @f(%p: !llvm.ptr<1>, %i: i32) -> f32 {
      %q = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = llvm.load %q : !llvm.ptr<1> -> f32
      return %v : f32
    }

No fly operation or type remains after it. It also lowers what upstream would leave to a device library, or does not
lower: `math` operations (`math_functions`), conversions of floats below 16 bits (`narrow_floats`), shifts by the width
or more (`shifts`), `gpu.block_dim` and `gpu.grid_dim`. The last two become constants where the launch is static, else
loads from the hidden kernel arguments.

If a module still needs earlier passes (signatures, layouts, atom calls), these run first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from mlir import ir

from flydsl.arch import Arch
from flydsl.atoms import BUFFER, Lowering
from flydsl.dialect import async_copies
from flydsl.dialect.elements import element_bits, element_type, llvm_pointer_type, scalar_of
from flydsl.dialect.location import source_location
from flydsl.dialect.memory_inference import allocated_elements
from flydsl.dialect.ops import attributes_of
from flydsl.dialect.types import PointerType, fly_type
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError
from flydsl.passes import fly_convert_atom_call_to_ssa_form, fly_layout_lowering, fly_rewrite_func_signature
from flydsl.passes.rewriting import (
    constant,
    create,
    declarations,
    enclosing_function,
    entry_block,
    fly_name,
    functions,
    operand_of,
    update_function_type,
    values_of,
)
from flydsl.passes.to_rocdl import (
    atomics,
    buffers,
    copy_support,
    directed_rounding,
    divisions,
    floats_to_integers,
    math_functions,
    matrix,
    narrow_floats,
    register_indices,
    shifts,
    uniform,
    wide_on_host,
)
from flydsl.passes.to_rocdl.storage import convert_storage, storage_type

name = "convert-fly-to-rocdl"

# LLVM's AMDGPU address spaces.
ADDRESS_SPACES = {"generic": 0, "global": 1, "shared": 3, "register": 5}
# Offsets of hidden kernel arguments, code object version 5: AMDGPUUsage, "Implicit kernarg". Name -> (offset, bits).
_HIDDEN = {
    "grid_dim": {"x": (0, 32), "y": (4, 32), "z": (8, 32)},
    "block_dim": {"x": (12, 16), "y": (14, 16), "z": (16, 16)},
}
_CONSTANT_SPACE = 4
_DYNAMIC_SHARED = "__dynamic_shared__"
_OF_DEBUGGERS = "variable"  # stays until the module is LLVM's: see `flydsl.compiler.debugging.variables`


def apply(module: ir.Operation, arch: Arch) -> None:
    """Convert every function of a module."""
    ops = operations(module)
    if _is_higher(module, ops):
        for earlier in (fly_rewrite_func_signature, fly_layout_lowering, fly_convert_atom_call_to_ssa_form):
            earlier.apply(module, arch)
        ops = operations(module)
    matrix.require_supported(ops, arch)
    copy_support.require_supported(ops, arch)
    for op in ops:
        _note_alignment(op)
    for function in functions(module):
        within = operations(function)
        register_indices.clamp(within)
        _hoist_registers(function, within)
        for argument in entry_block(function).arguments:
            kind = fly_type(argument.type)
            if isinstance(kind, PointerType):
                argument.set_type(pointer_type(kind))
        update_function_type(function)
        _convert_function_type(function)
        _convert_body(function)
        if function.name != "gpu.func":
            wide_on_host.refuse(function)
        _expand(function, arch)
    for declaration in declarations(module):
        _convert_function_type(declaration)
    divisions.expand_launchers(module)
    _require_no_fly_types(module)


def _expand(function: ir.Operation, arch: Arch) -> None:
    """Expand what LLVM has no operation for. Each expansion sees what those before it made."""
    in_kernel = function.name == "gpu.func"
    expansions: tuple[Callable[[list[ir.Operation]], bool], ...] = (
        directed_rounding.expand,
        partial(narrow_floats.expand, instructions=arch.float8_conversions if in_kernel else ()),
        partial(floats_to_integers.expand, in_kernel=in_kernel),
        math_functions.expand,  # whose own conversions are of numbers in range
        shifts.expand,
    )
    ops = operations(function)
    for expand in expansions:
        if expand(ops):
            ops = operations(function)


def _is_higher(module: ir.Operation, ops: Iterable[ir.Operation]) -> bool:
    """True if functions still take tensors, or there are operations that an earlier pass must lower."""
    kinds = [fly_type(argument.type) for function in functions(module) for argument in entry_block(function).arguments]
    kinds += [fly_type(kind) for declaration in declarations(module) for kind in _function_type(declaration).inputs]
    if any(kind is not None and not isinstance(kind, PointerType) for kind in kinds):
        return True
    return any(name not in (*_CONVERSIONS, _OF_DEBUGGERS) for op in ops if (name := fly_name(op)))


def _function_type(function: ir.Operation) -> ir.FunctionType:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _convert_function_type(function: ir.Operation) -> None:
    """Convert the pointers that a function takes and returns."""
    old = _function_type(function)
    inputs, results = ([_converted_type(kind) for kind in kinds] for kinds in (old.inputs, old.results))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _converted_type(mlir_type: ir.Type) -> ir.Type:
    kind = fly_type(mlir_type)
    return pointer_type(kind) if isinstance(kind, PointerType) else mlir_type


def _require_no_fly_types(module: ir.Operation) -> None:
    """Raise CompileError if a value of a fly type is left, such as a tensor that a loop carries."""
    for op in operations(module):
        arguments = (argument for region in op.regions for block in region.blocks for argument in block.arguments)
        for value in (*op.results, *arguments):
            kind = fly_type(value.type)
            if kind is not None:
                raise CompileError(f"a {kind} is left over in {op.name}", at=source_location(op.location))


def pointer_type(kind: PointerType) -> ir.Type:
    """The LLVM pointer for a fly pointer."""
    if kind.space not in ADDRESS_SPACES:
        raise CompileError(f"{kind} has no LLVM pointer", hint=f"address spaces: {', '.join(ADDRESS_SPACES)}")
    return llvm_pointer_type(ADDRESS_SPACES[kind.space])


def _convert_pointers_of(op: ir.Operation) -> None:
    """Convert the pointers that a loop or branch takes or gives back."""
    arguments = (argument for region in op.regions for block in region.blocks for argument in block.arguments)
    for value in (*op.results, *arguments):
        kind = fly_type(value.type)
        if isinstance(kind, PointerType):
            value.set_type(pointer_type(kind))


def _hoist_registers(function: ir.Operation, within: Sequence[ir.Operation]) -> None:
    """Allocate register memory first of all, in its order: inside a loop each iteration would allocate anew."""
    allocations = [op for op in within if fly_name(op) == "make_ptr" and not len(op.operands)]
    start = next(op for op in entry_block(function).operations if op.operation not in allocations)
    for op in allocations:
        op.move_before(start)


def _convert_body(function: ir.Operation) -> None:
    with uniform.remembering():
        dead = [op for op in operations(function) if _is_converted(op, function)]
    for op in reversed(dead):
        _erase(op)


def _is_converted(op: ir.Operation, function: ir.Operation) -> bool:
    """Convert an operation. True if nothing uses it any more."""
    operation, mlir_name = fly_name(op), op.name
    if operation == _OF_DEBUGGERS:
        return False
    if operation:
        with ir.InsertionPoint(op):
            _convert(op, operation)
        return True
    _convert_pointers_of(op)
    if mlir_name in ("gpu.block_dim", "gpu.grid_dim"):
        with ir.InsertionPoint(op):
            op.result.replace_all_uses_with(_dimension(op, function))
        return True
    if mlir_name == "builtin.unrealized_conversion_cast" and _is_pointer_cast(op):
        op.results[0].replace_all_uses_with(op.operands[0])
        return True
    return False


def _is_pointer_cast(op: ir.Operation) -> bool:
    """True for a cast between LLVM's pointers and the DSL's, in either direction; the latter are converted by now."""
    kind = op.results[0].type
    return fly_type(kind) is not None or [value.type for value in op.operands] == [kind]


def _erase(op: ir.Operation) -> None:
    """Remove a converted operation. MLIR ends the process if an operation that is still used is erased."""
    for result in op.results:
        user = next(iter(result.uses), None)
        if user is not None:
            raise CompileError(
                f"{fly_type(result.type) or result.type} has no form that {user.owner.name} could use",
                at=source_location(user.owner.location),
            )
    op.erase()


def _note_alignment(op: ir.Operation) -> None:
    """Put the alignment that a pointer's type states on the operation that uses it, before the type is gone."""
    operation = fly_name(op)
    if operation == "ptr.load":
        pointer = op.operands[0]
    elif operation == "ptr.store":
        pointer = op.operands[1]
    elif operation == "copy_atom_call_ssa":
        pointer = operand_of(op.operands[-1], "make_view")
    else:
        return
    alignment = fly_type(pointer.type).known_alignment
    op.attributes["alignment"] = ir.IntegerAttr.get(element_type("i64"), alignment)


def _convert(op: ir.Operation, operation: str) -> None:
    if operation not in _CONVERSIONS:
        raise CompileError(f"fly.{operation} is left over: no pass lowers it", at=source_location(op.location))
    _CONVERSIONS[operation](op)


# --- memory ----------------------------------------------------------------------------------------------------------
#
# While a body is converted, a fly pointer's uses are replaced by the LLVM pointer, so an operand is already converted
# but has lost its element type; a load or store takes that from the value it moves.


def _nothing(op: ir.Operation) -> None:
    """Create nothing. Static values and atoms have no counterpart; a view is read through its pointer."""


def _make_ptr(op: ir.Operation) -> None:
    kind = fly_type(op.result.type)
    if kind.space == BUFFER:
        _replace(op, buffers.make_resource(op))
        return
    if kind.space != "register":
        raise CompileError(
            f"fly.make_ptr of {kind} is unsupported",
            at=source_location(op.location),
            hint="fx.make_rmem_tensor(shape, dtype) makes registers",
        )
    attributes = {"elem_type": ir.TypeAttr.get(storage_type(element_type(kind.element)))}
    size = constant(allocated_elements(attributes_of(op)), 64, op.location)
    _replace(op, create("llvm.alloca", [size], [pointer_type(kind)], op.location, attributes).result)


def _add_offset(op: ir.Operation) -> None:
    pointer, offset = op.operands
    kind = fly_type(op.result.type)
    if kind.space == BUFFER:
        return  # the offset goes into each buffer instruction
    symbol = fly_type(offset.type).value
    bits = 32 if isinstance(symbol, int) and -(2**31) <= symbol < 2**31 else 64
    index = constant(symbol, bits, op.location) if isinstance(symbol, int) else operand_of(offset, "make_int_tuple")
    attributes = {
        "elem_type": ir.TypeAttr.get(storage_type(element_type(kind.element))),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(2**31)]),
    }
    _replace(op, create("llvm.getelementptr", [pointer, index], [pointer.type], op.location, attributes).result)


def _recast_iter(op: ir.Operation) -> None:
    if fly_type(op.result.type).space != BUFFER:
        _replace(op, op.operands[0])


def _inttoptr(op: ir.Operation) -> None:
    kind = pointer_type(fly_type(op.result.type))
    _replace(op, create("llvm.inttoptr", [op.operands[0]], [kind], op.location).result)


def _ptrtoint(op: ir.Operation) -> None:
    _replace(op, create("llvm.ptrtoint", [op.operands[0]], [op.result.type], op.location).result)


def _get_dyn_shared(op: ir.Operation) -> None:
    """The address of an array of unknown size, which the launch places after all static shared memory."""
    module = enclosing_function(op).parent
    names = {
        str(ir.StringAttr(o.attributes["sym_name"]).value)
        for o in module.regions[0].blocks[0].operations
        if "sym_name" in o.attributes
    }
    kind = fly_type(op.result.type)
    if _DYNAMIC_SHARED not in names:
        attributes = {
            "sym_name": ir.StringAttr.get(_DYNAMIC_SHARED),
            "global_type": ir.TypeAttr.get(ir.Type.parse("!llvm.array<0 x i8>")),
            "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
            "addr_space": ir.IntegerAttr.get(element_type("i32"), ADDRESS_SPACES[kind.space]),
            "alignment": ir.IntegerAttr.get(element_type("i64"), kind.known_alignment),
            "dso_local": ir.UnitAttr.get(),
            "visibility_": ir.IntegerAttr.get(element_type("i64"), 0),
        }
        with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
            ir.Operation.create("llvm.mlir.global", [], [], attributes, regions=1, loc=op.location)
    symbol = {"global_name": ir.FlatSymbolRefAttr.get(_DYNAMIC_SHARED)}
    _replace(
        op, create("llvm.mlir.addressof", [], [pointer_type(PointerType("i8", "shared"))], op.location, symbol).result
    )


def _ptr_load(op: ir.Operation) -> None:
    _replace(op, _load(op, op.operands[0]))


def _ptr_store(op: ir.Operation) -> None:
    value, pointer = op.operands
    _store(op, value, pointer)


def _copy_atom_call_ssa(op: ir.Operation) -> None:
    _COPIES[fly_type(op.operands[0].type).op.lowering](op, *op.operands)


def _copy_at_pointer(op: ir.Operation, atom: ir.Value, *operands: ir.Value) -> None:
    pointer = operand_of(operands[-1], "make_view")
    if len(op.results):
        _replace(op, _load(op, pointer))
    else:
        _store(op, operands[0], pointer)


def _update_at_pointer(op: ir.Operation, atom: ir.Value, value: ir.Value, view: ir.Value) -> None:
    pointer = operand_of(view, "make_view")
    atomics.update(fly_type(atom.type).op, value, pointer, op.attributes["alignment"], op.location)


def _copy_buffer(op: ir.Operation, atom: ir.Value, *operands: ir.Value) -> None:
    if len(op.results):
        _replace(op, buffers.load(atom, operands[0], op.result.type, op.location))
    else:
        buffers.store(atom, operands[0], operands[1], op.location)


def _update_buffer(op: ir.Operation, atom: ir.Value, value: ir.Value, view: ir.Value) -> None:
    buffers.update(atom, value, view, op.location)


def _copy_buffer_to_lds(op: ir.Operation, atom: ir.Value, source: ir.Value, target: ir.Value) -> None:
    buffers.load_to_lds(atom, source, operand_of(target, "make_view"), op.location)


def _copy_global_to_lds(op: ir.Operation, atom: ir.Value, source: ir.Value, target: ir.Value) -> None:
    addresses = [operand_of(source, "make_view"), operand_of(target, "make_view")]
    i32 = element_type("i32")
    copy = fly_type(atom.type).op
    numbers = {"size": copy.bits // 8, "offset": 0, "aux": 0}
    attributes = {name: ir.IntegerAttr.get(i32, number) for name, number in numbers.items()}
    if copy.is_asynchronous:
        attributes |= async_copies.mark()
    create("rocdl.global.load.lds", addresses, [], op.location, attributes)


def _read_transposed(op: ir.Operation, atom: ir.Value, source: ir.Value) -> None:
    copy = fly_type(atom.type).op
    words = element_type("i16"), copy.bits // 16
    if copy.element_bits != 16:
        words = element_type("i32"), copy.bits // 32
    moved = ir.VectorType.get([words[1]], words[0])
    read = create(copy.operation, [operand_of(source, "make_view")], [moved], op.location).result
    stored = create("llvm.bitcast", [read], [storage_type(op.result.type)], op.location).result
    _replace(op, convert_storage(stored, op.result.type, op.location))


_COPIES: dict[Lowering, Callable[..., None]] = {
    Lowering.POINTER: _copy_at_pointer,
    Lowering.ATOMIC: _update_at_pointer,
    Lowering.BUFFER: _copy_buffer,
    Lowering.BUFFER_ATOMIC: _update_buffer,
    Lowering.BUFFER_TO_LDS: _copy_buffer_to_lds,
    Lowering.GLOBAL_TO_LDS: _copy_global_to_lds,
    Lowering.LDS_TRANSPOSE: _read_transposed,
}


def _mma_atom_call_ssa(op: ir.Operation) -> None:
    atom, *operands = op.operands
    _replace(op, matrix.multiply(fly_type(atom.type).op, operands, values_of(atom), op.location))


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.result.replace_all_uses_with(value)


def _load(op: ir.Operation, pointer: ir.Value) -> ir.Value:
    """The value that a load, with its result type and alignment, reads at a pointer."""
    storage = storage_type(op.result.type)
    value = create("llvm.load", [pointer], [storage], op.location, _alignment(op, storage)).result
    return convert_storage(value, op.result.type, op.location)


def _store(op: ir.Operation, value: ir.Value, pointer: ir.Value) -> None:
    stored = convert_storage(value, storage_type(value.type), op.location)
    create("llvm.store", [stored, pointer], [], op.location, _alignment(op, stored.type))


def _alignment(op: ir.Operation, storage: ir.Type) -> dict[str, ir.Attribute]:
    """The alignment of an access, where it is not the one that LLVM takes a number of this type to have."""
    alignment = ir.IntegerAttr(op.attributes["alignment"])
    is_natural = storage == scalar_of(storage) and element_bits(str(storage)) == 8 * alignment.value
    return {} if is_natural else {"alignment": alignment}


# --- dimensions ------------------------------------------------------------------------------------------------------


def _dimension(op: ir.Operation, function: ir.Operation) -> ir.Value:
    """`gpu.block_dim` or `gpu.grid_dim` along one axis, as an index."""
    which = op.name.removeprefix("gpu.")
    axis = str(op.attributes["dimension"]).removeprefix("#gpu<dim ").rstrip(">")
    index = element_type("index")
    known = f"known_{'block' if which == 'block_dim' else 'grid'}_size"
    if known in function.attributes:
        size = list(ir.DenseI32ArrayAttr(function.attributes[known]))["xyz".index(axis)]
        return create("arith.constant", [], [index], op.location, {"value": ir.IntegerAttr.get(index, size)}).result
    offset, bits = _HIDDEN[which][axis]
    value = _hidden_argument(offset, bits, op.location)
    return create("arith.index_castui", [value], [index], op.location).result


def _hidden_argument(offset: int, bits: int, at: ir.Location) -> ir.Value:
    pointer_kind, integer = llvm_pointer_type(_CONSTANT_SPACE), element_type(f"i{bits}")
    intrinsic = {
        "intrin": ir.StringAttr.get("llvm.amdgcn.implicitarg.ptr"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    base = create("llvm.call_intrinsic", [], [pointer_kind], at, intrinsic).result
    step = {"elem_type": ir.TypeAttr.get(element_type("i8")), "rawConstantIndices": ir.DenseI32ArrayAttr.get([offset])}
    pointer = create("llvm.getelementptr", [base], [pointer_kind], at, step).result
    attributes = {"alignment": ir.IntegerAttr.get(element_type("i64"), bits // 8), "invariant": ir.UnitAttr.get()}
    return create("llvm.load", [pointer], [integer], at, attributes).result


_CONVERSIONS: dict[str, Callable[[ir.Operation], None]] = {
    "static": _nothing,
    "make_int_tuple": _nothing,
    "make_layout": _nothing,
    "make_copy_atom": _nothing,
    "atom.set_value": _nothing,
    "make_mma_atom": _nothing,
    "make_view": _nothing,
    "make_ptr": _make_ptr,
    "add_offset": _add_offset,
    "ptr.load": _ptr_load,
    "ptr.store": _ptr_store,
    "recast_iter": _recast_iter,
    "inttoptr": _inttoptr,
    "ptrtoint": _ptrtoint,
    "get_dyn_shared": _get_dyn_shared,
    "copy_atom_call_ssa": _copy_atom_call_ssa,
    "mma_atom_call_ssa": _mma_atom_call_ssa,
}
