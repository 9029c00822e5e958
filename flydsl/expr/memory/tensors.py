"""Tensors and pointers: their classes, their parts, and loads and stores."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from mlir import ir

from flydsl import layout as algebra
from flydsl.atoms import BUFFER
from flydsl.dialect.elements import element_type, llvm_pointer_type, scalar_of
from flydsl.dialect.leaves import is_static
from flydsl.dialect.location import argument_error, trace_error
from flydsl.dialect.memory_inference import infer_alloca, register_elements
from flydsl.dialect.types import ADDRESS_SPACES, MemRefType, PointerType, fly_type
from flydsl.errors import how_to_make
from flydsl.errors.places import user_location
from flydsl.expr.layouts.algebra import IntTuple, LayoutValue, get_shape, get_stride, has_none
from flydsl.expr.layouts.algebra import slice as slice_modes
from flydsl.expr.layouts.coord_tensor import CoordTensor
from flydsl.expr.memory.shared_views import note_view
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Int8, Int32, Int64, Integer, Numeric, as_numeric, numeric_class, require_numeric
from flydsl.expr.printing.assertions import assert_index
from flydsl.expr.printing.refusals import ELEMENTS_WHILE_TRACED
from flydsl.expr.tracing.emit import emit, emit_fly
from flydsl.expr.tracing.executing import text_of_lanes
from flydsl.expr.tracing.operands import (
    FlyValue,
    as_fly_value,
    as_ir_value,
    as_operand,
    element_name,
    ir_type_of,
    located,
)
from flydsl.layout.int_tuple import as_int_tuple

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyLayout, AnyPointer, AnyTensor, IntTupleLike, Number, Result, ScalarType, Value

__all__ = [
    "AddressSpace", "add_offset", "get_dyn_shared", "get_iter", "get_layout", "inttoptr", "is_generic_address_space",
    "is_target_address_space", "make_ptr", "make_view", "memref_alloca", "memref_load", "memref_load_vec",
    "memref_store", "memref_store_vec", "ptr_load", "ptr_store", "ptrtoint", "recast_iter",
]  # fmt: skip


# Inside the classes below, `type` is the fly type of a value.
Scalar = type[Numeric]


class AddressSpace(str, Enum):
    """Address spaces of memory, by the names of the fly dialect."""

    Generic = "generic"
    Global = "global"
    Shared = "shared"
    Register = "register"
    BufferDesc = BUFFER

    def __str__(self) -> str:
        return str(self.value)

    def __int__(self) -> int:
        return ADDRESS_SPACES.index(self.value)


def address_space_from_attr(space: AddressSpace | int | str | ir.Attribute) -> AddressSpace:
    """An address space by its name, number or attribute.

    >>> address_space_from_attr(1) is address_space_from_attr("global") is AddressSpace.Global
    True
    """
    text = _space_text(space)
    try:
        return AddressSpace(text)
    except ValueError:
        names = ", ".join(ADDRESS_SPACES)
        raise argument_error(f"{space!r} is not an address space", f"those of the fly dialect: {names}") from None


def is_generic_address_space(space: AddressSpace, expected: AddressSpace) -> bool:
    """True if an address space, by name, number or as an attribute, is one of the fly dialect's."""
    return not is_target_address_space(expected, expected) and _space_text(space) == _space_text(expected)


def is_target_address_space(space: AddressSpace, expected: AddressSpace | str) -> bool:
    """True if an address space is one of a target's own, such as `AddressSpace.BufferDesc`."""
    return _space_text(expected).startswith("#") and _space_text(space) == _space_text(expected)


def _space_text(space: Any) -> str:
    number = isinstance(space, int) and 0 <= space < len(ADDRESS_SPACES)
    return ADDRESS_SPACES[space] if number else str(space)


class Pointer(FlyValue, shows=(PointerType,)):
    """The address of an element. `p + n` is `n` elements further; `p[n]` reads and `p[n] = v` writes there."""

    type: PointerType

    def __str__(self) -> str:
        return text_of_lanes(self.value, type(self).__name__) or f"{self!r}{ELEMENTS_WHILE_TRACED}"

    @property
    def dtype(self) -> Scalar:
        """The scalar type of the elements."""
        return numeric_class(self.type.element)

    element_type = value_type = dtype

    @property
    def address_space(self) -> str:
        """The address space: `global`, `shared`, `register` or a buffer's."""
        return self.type.space

    memspace = address_space

    @property
    def alignment(self) -> int:
        """The number of bytes that the address is known to be a multiple of."""
        return self.type.known_alignment

    @property
    def llvm_ptr(self) -> ir.Value:
        """The pointer as MLIR's `!llvm.ptr`, in LLVM's number of its address space: of memory, not of registers."""
        return address_of("llvm_ptr", self)[1]

    def __add__(self, offset: Any) -> Pointer:
        return add_offset(self, offset)

    __radd__ = __add__

    def __sub__(self, offset: Any) -> Pointer:
        number = as_numeric(offset)
        if not isinstance(number, Numeric):
            raise argument_error(
                f"the offset of a pointer must be one integer, got {offset!r}", "pass a number of elements, such as 4"
            )
        return add_offset(self, -number)

    def view(self, layout: Any) -> Tensor:
        """The memory from this address on, viewed with a layout."""
        return make_view(self, layout)

    def load(self, result_type: Any = None) -> Any:
        """The element at the address, or a vector of elements if `result_type` is a vector type."""
        return ptr_load(self, result_type)

    def store(self, value: Any) -> None:
        """Write the element at the address."""
        ptr_store(value, self)

    def __iter__(self) -> NoReturn:
        raise trace_error(
            f"iteration over a pointer, {self!r}, which has no end",
            "loop over an offset: `for i in range(n)`, and read pointer[i]",
        )

    def __getitem__(self, offset: Any) -> Any:
        return (self + offset).load()

    def __setitem__(self, offset: Any, value: Any) -> None:
        (self + offset).store(value)


class Tensor(FlyValue, shows=(MemRefType,)):
    """A tensor: memory viewed with a layout.

    `t[coord]` with integers reads an element and `t[coord] = v` writes one. With None in a mode (`t[None, bid]`) the
    result is the tensor that remains when the other modes are fixed, and `t[None, bid] = v`
    writes a vector to it.
    """

    type: MemRefType

    def __new__(cls, value: Any) -> Any:
        return value if isinstance(value, CoordTensor) else object.__new__(cls)

    def __init__(self, value: ir.Value | Tensor) -> None:
        super().__init__(value.value if isinstance(value, Tensor) else value)

    @property
    def dtype(self) -> Scalar:
        """The scalar type of the elements."""
        return numeric_class(self.type.element)

    element_type = value_type = dtype

    @property
    def layout(self) -> Any:
        """The layout: a plain Layout if static, else a traced value."""
        return get_layout(self)

    @property
    def shape(self) -> Any:
        """The extent of each mode, in elements: Python ints if they are known at compile time, otherwise Int32 values.

        It unpacks, `m, n = t.shape`, and counts, `fx.size(t.shape)`.
        """
        return get_shape(self.layout)

    @property
    def stride(self) -> Any:
        """The distance between neighbours along each mode, in elements; known at compile time or not, like `shape`."""
        return get_stride(self.layout)

    @property
    def iterator(self) -> Pointer:
        """The pointer to the first element."""
        return get_iter(self)

    iter = iterator

    @property
    def memspace(self) -> str:
        """The address space: `global`, `shared`, `register` or a buffer's."""
        return self.type.space

    address_space = memspace

    @property
    def alignment(self) -> int:
        """The number of bytes that the address of the first element is known to be a multiple of."""
        return self.type.pointer.known_alignment

    @property
    def leading_dim(self) -> int | None:
        """The mode whose stride is 1; None if no mode's is known to be."""
        layout = self.type.layout
        strides = () if isinstance(layout, algebra.ComposedLayout) else layout.strides
        found = [i for i, d in enumerate(strides if isinstance(strides, tuple) else (strides,)) if d == 1]
        return found[0] if found else None

    def load(self) -> Vector:
        """All elements of a register tensor as a vector."""
        return memref_load_vec(self)

    load_vec = load

    def store(self, vector: Any) -> None:
        """Write a vector to a register tensor."""
        memref_store_vec(vector, self)

    store_vec = store

    def fill(self, value: Any) -> None:
        """Set every element of a register tensor to one number."""
        self.store(Vector.filled([located(register_elements, self.type)], value, self.dtype))

    def __bool__(self) -> NoReturn:
        raise trace_error(
            f"a tensor has no truth value: {self!r}",
            "compare an element, such as tensor[i] > 0, or ask whether it `is None`",
        )

    def __eq__(self, other: object) -> bool:
        """True for the same tensor. TraceError for another one, or a number: elements are what can be compared."""
        if self is not other and isinstance(other, Tensor | Numeric | int | float):
            raise trace_error(
                f"a comparison of a tensor, {self!r}",
                "compare an element, such as tensor[i] == 0; fragment.load() is a vector with operators",
            )
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = FlyValue.__hash__

    def __getitem__(self, coordinate: Any) -> Any:
        """Read an element, or take a part of the tensor: `t[i, j]`, `t[i]` (leftmost mode fastest), `t[i, None]`.

        A part is a view of the same memory; it has the modes for which the coordinate has None. Raises TraceError for
        slices with a colon.
        """
        self._refuse_slices(coordinate)
        if has_none(coordinate):
            return slice_modes(self, coordinate)
        return memref_load(self, coordinate)

    def _refuse_slices(self, coordinate: Any) -> None:
        parts = coordinate if isinstance(coordinate, tuple | list) else (coordinate,)
        if slice in map(type, parts):
            raise argument_error(
                f"a range in the index of a tensor, {self!r}",
                "None keeps a whole mode, as in t[None, j]; for a tile of one: "
                "fx.zipped_divide(t, fx.make_tile(4))[None, i], or fx.Vector.load",
            )

    def __iter__(self) -> NoReturn:
        raise trace_error(
            f"iteration over a tensor, {self!r}",
            "loop over an index: `for i in range(n)`, or range_constexpr for an unrolled loop",
        )

    def __setitem__(self, coordinate: Any, value: Any) -> None:
        """Write an element, or with None in the coordinate a part, from a value of the tensor's type."""
        self._refuse_slices(coordinate)
        if has_none(coordinate):
            self[coordinate].store(value)
        else:
            memref_store(value, self, coordinate)


def require_tensor(what: str, value: Value) -> Tensor:
    """`value` as a tensor. Raises ArgumentError for anything else."""
    value = as_fly_value(value)
    if isinstance(value, Tensor):
        return value
    raise argument_error(f"{what} takes a tensor, not {value!r}", how_to_make.TENSOR)


def get_layout(tensor: AnyTensor) -> Result:
    """The layout of a tensor."""
    if isinstance(tensor, CoordTensor):
        return tensor.layout
    known = require_tensor("get_layout", tensor)
    if is_static(known.type.layout):
        return known.type.layout
    return LayoutValue(emit_fly("get_layout", [known.value]).result)


def get_iter(tensor: AnyTensor) -> Result:
    """The pointer to a tensor's first element; of a coordinate tensor its first coordinate."""
    if isinstance(tensor, CoordTensor):
        return as_int_tuple(tensor.origin)
    return Pointer(emit_fly("get_iter", [require_tensor("get_iter", tensor).value]).result)


def make_view(pointer: AnyPointer, layout: AnyLayout) -> Result:
    """The memory at `pointer` viewed with `layout`.

    With an integer, or a tuple of them, in place of the pointer: the coordinate tensor that begins there, whose layout
    is static.
    """
    if isinstance(pointer, int | tuple | Numeric | IntTuple):
        return CoordTensor.at(pointer, layout)
    start = _require_pointer("make_view", pointer)
    view = Tensor(emit_fly("make_view", [start, as_operand(layout)]).result)
    if view.type.space == "shared":
        note_view(start, view.type)
    return view


def as_memory(coordinates: CoordTensor) -> Tensor:
    """Bytes from address 0 on, laid out as a coordinate tensor of integers: their addresses are its coordinates."""
    return make_view(inttoptr(PointerType("i8", "global"), 0), coordinates.layout)


def of_memory(coordinates: CoordTensor, part: Tensor) -> CoordTensor:
    """The coordinates of a part of `as_memory(coordinates)`."""
    return CoordTensor(coordinates.moved(Int32(ptrtoint(get_iter(part)))), get_layout(part))


def add_offset(pointer: AnyPointer, offset: Number) -> Pointer:
    """`pointer` advanced by `offset` elements."""
    return Pointer(emit_fly("add_offset", [_require_pointer("add_offset", pointer), as_operand(offset)]).result)


def recast_iter(result_type: PointerType | ScalarType, pointer: AnyPointer) -> Pointer:
    """The same address as a pointer to elements of another type.

    result_type: an element type, which keeps the known alignment, or a `PointerType`, whose alignment the author
    promises: `fx.PointerType.get(fx.Float16, fx.AddressSpace.Shared, 16)`.
    """
    source = _require_pointer("recast_iter", pointer)
    kind = fly_type(source.type)
    if not isinstance(result_type, PointerType):
        result_type = located(PointerType, element_name(result_type), kind.space).aligned(kind.known_alignment)
    return Pointer(emit_fly("recast_iter", [source], results=[result_type]).result)


def get_dyn_shared(dtype: ScalarType = None) -> Pointer:
    """The start of the kernel's dynamic shared memory. Its launch gives the size in bytes (`smem=`).

    dtype: the element type; without one it is a pointer to bytes.
    """
    start = Pointer(emit_fly("get_dyn_shared").result)
    return start if dtype is None else recast_iter(dtype, start)


def make_ptr(
    result_type: PointerType | ir.Type,
    args: tuple[Number, ...] = (),
    *,
    dict_attrs: dict[str, ir.Attribute] | None = None,
) -> Pointer:
    """A pointer from its parts.

    A buffer resource (`#fly_rocdl.buffer_desc`) is made of a pointer, a stride (i16), a size in bytes (i64) and flags
    (i32); registers of nothing, with the number of elements in `dict_attrs={"allocSize": n}`.
    """
    if not isinstance(result_type, PointerType | ir.Type):
        raise argument_error(
            f"make_ptr: the type must be a pointer type, got {result_type!r}",
            "make a type with fx.PointerType.get(element, address_space, alignment); " + how_to_make.POINTER,
        )
    operands = [as_ir_value(part) for part in (args if isinstance(args, tuple | list) else (args,))]
    attributes = {}
    if dict_attrs is not None:
        if not isinstance(dict_attrs, dict) or not all(
            isinstance(value, int) and 0 <= value < 2**63 for value in dict_attrs.values()
        ):
            raise argument_error(
                f"dict_attrs of make_ptr must be positive ints, got {dict_attrs!r}",
                'pass dict_attrs={"allocSize": 16}, for example, the number of elements',
            )
        sizes = {name: ir.IntegerAttr.get(element_type("i64"), value) for name, value in dict_attrs.items()}
        attributes["dictAttrs"] = ir.DictAttr.get(sizes)
    return Pointer(emit_fly("make_ptr", operands, results=[result_type], attributes=attributes).result)


def ptr_load(pointer: AnyPointer, result_type: ScalarType | None = None) -> Result:
    """The element at a pointer, or what `result_type` says: a vector of elements, or bytes as another type.

        fx.ptr_load(bytes_in_lds + 16 * i, fx.T.vec(8, fx.T.bf16))     # 16 bytes from a pointer to Uint8

    A type of other elements than the pointer's is read as by `recast_iter`: the address is as aligned as is known.
    """
    source = _require_pointer("ptr_load", pointer)
    dtype = numeric_class(fly_type(source.type).element)
    kind = dtype.ir_type if result_type is None else ir_type_of(result_type)
    element = scalar_of(kind)
    if element != dtype.ir_type:
        dtype = numeric_class(element)
        source = recast_iter(dtype, source).value
    dtype = getattr(result_type, "element", dtype)  # a vector type of the DSL knows the sign
    value = emit_fly("ptr.load", [source], results=[kind]).result
    return Vector(value, dtype=dtype) if isinstance(kind, ir.VectorType) else dtype.of(value)


def ptr_store(value: Value, pointer: AnyPointer) -> None:
    """Write an element, or a vector of elements, at a pointer; a Python number takes the pointer's type."""
    target = _require_pointer("ptr_store", pointer)
    dtype = numeric_class(fly_type(target.type).element)
    stored = value if isinstance(value, ArithValue | ir.Value) else dtype.exactly(value)
    emit_fly("ptr.store", [as_ir_value(stored), target])


def _require_pointer(what: str, value: Any) -> ir.Value:
    given = value.value if isinstance(value, Pointer) else value
    if isinstance(given, ir.Value) and isinstance(fly_type(given.type), PointerType):
        return given
    raise argument_error(f"{what} takes a pointer, not {value!r}", "fx.get_iter(tensor) is one")


def memref_alloca(layout: AnyLayout | MemRefType, dtype: ScalarType | AnyLayout) -> Tensor:
    """Create a tensor in registers. layout: static; dtype: the element type.

    Also `memref_alloca(fx.MemRefType.get(fx.T.f32, fx.LayoutType.get(4, 1), fx.AddressSpace.Register), layout)`.
    """
    if isinstance(layout, MemRefType):
        return memref_alloca(dtype, _register_element(layout, dtype))  # type: ignore[arg-type]
    element = require_numeric("memref_alloca", dtype).memory_name
    operand = as_operand(layout)
    (kind,) = located(infer_alloca, [fly_type(operand.type)], {"element": element})
    return Tensor(emit_fly("memref.alloca", [operand], results=[kind]).result)


def _register_element(kind: MemRefType, layout: Any) -> Any:
    """The element type of a register tensor whose type is given together with its layout."""
    if kind.space != "register" or kind.layout != layout:
        raise argument_error(
            f"memref_alloca of {kind} with layout {layout}: it is for registers, of that layout",
            "fx.make_rmem_tensor(shape, dtype) makes one",
        )
    return numeric_class(kind.element)


def _check_coordinate(what: str, tensor: Tensor, coordinate: Any) -> None:
    if isinstance(coordinate, IntTuple):
        return
    given = len(coordinate) if isinstance(coordinate, tuple | list) else 1
    if given == 1:
        return
    expected = algebra.rank(tensor.type.layout)
    if given != expected:
        raise argument_error(
            f"{what} with {given} indices of a tensor with {expected} modes, {tensor.type}",
            "give one index for each mode, None to keep a mode, or one coordinate tuple",
        )


class BufferElements:
    """Read and write an element of a buffer tensor; `flydsl.expr.atoms.copies` enters this, as copies do it."""

    copy: Callable[[Tensor, Any, Tensor, bool], None]


buffer_elements = BufferElements()


def _one_element(tensor: Tensor) -> Tensor:
    """A register for an element of a tensor."""
    return memref_alloca(algebra.Layout(1, 1), tensor.dtype)


def memref_load(tensor: Tensor, coordinate: IntTupleLike) -> Result:
    """The element at a coordinate: one integer per mode, or one index into the whole tensor, leftmost mode fastest."""
    _check_coordinate("a load", require_tensor("memref_load", tensor), coordinate)
    assert_index(tensor, coordinate)
    if tensor.type.space == BUFFER:
        held = _one_element(tensor)
        buffer_elements.copy(tensor, coordinate, held, False)
        return memref_load(held, 0)
    at = user_location()
    return tensor.dtype.of(
        emit_fly("memref.load", [tensor.value, as_operand(_unwrapped(coordinate), at)], at=at).result
    )


def memref_store(value: Value, tensor: Tensor, coordinate: IntTupleLike) -> None:
    """Write one element; a Python number takes the tensor's type."""
    _check_coordinate("a store", require_tensor("memref_store", tensor), coordinate)
    assert_index(tensor, coordinate)
    if tensor.type.space == BUFFER:
        held = _one_element(tensor)
        memref_store(value, held, 0)
        buffer_elements.copy(tensor, coordinate, held, True)
        return
    element, at = _as_element(value, tensor), user_location()
    emit_fly("memref.store", [element, tensor.value, as_operand(_unwrapped(coordinate), at)], at=at)


def _unwrapped(coordinate: Any) -> Any:
    """A coordinate of one integer without its parentheses, which indexes the whole tensor."""
    return coordinate[0] if isinstance(coordinate, tuple | list) and len(coordinate) == 1 else coordinate


def _as_element(value: Any, tensor: Tensor) -> ir.Value:
    if isinstance(value, ArithValue | ir.Value):
        operand = value if isinstance(value, ir.Value) else value.ir_value()
        if operand.type != tensor.dtype.ir_type:
            raise argument_error(
                f"a store of {operand.type} to a tensor of {tensor.type.element}",
                f"convert it with .to(fx.{tensor.dtype.__name__})",
            )
        return operand
    return tensor.dtype.exactly(value).ir_value()


def memref_load_vec(tensor: Tensor) -> Vector:
    """All elements of a register tensor, in the order of its coordinates (leftmost mode fastest), as a vector."""
    value = emit_fly("memref.load_vec", [require_tensor("memref_load_vec", tensor).value]).result
    return Vector(value, dtype=tensor.dtype)


def memref_store_vec(vector: Vector, tensor: AnyTensor) -> None:
    """Write a vector to a register tensor of the same size and type."""
    memref = require_tensor("memref_store_vec", tensor)
    value = vector.ir_value() if isinstance(vector, ArithValue) else vector
    if not isinstance(value, ir.Value):
        raise argument_error(f"memref_store_vec takes a vector, not {vector!r}", how_to_make.VECTOR)
    emit_fly("memref.store_vec", [value, memref.value])


# --- pointers as integers, and back ----------------------------------------------------------------------------------

# LLVM's number of an address space, and the integers that hold its addresses.
_SPACES: dict[str, tuple[int, type[Integer]]] = {"generic": (0, Int64), "global": (1, Int64), "shared": (3, Int32)}


def address_of(what: str, pointer: Any, accessed: Value | ScalarType = None) -> tuple[PointerType, ir.Value]:
    """The type of a pointer to memory, and the pointer as LLVM's.

    accessed: the value that is stored, or the type that is loaded. LLVM's own pointers name none, so theirs is this.
    """
    pointer = as_fly_value(pointer)
    space = _space_of_llvm(pointer)
    if space is not None:
        if accessed is None:
            raise argument_error(f"{what} of {pointer.type}, which names no type of elements", "pass dtype=fx.Int32")
        loaded = isinstance(accessed, type | ir.Type)
        element = ir_type_of(accessed) if loaded else as_numeric(accessed).dtype
        return PointerType(element_name(scalar_of(element) if loaded else element), space), pointer
    kind = fly_type(pointer.value.type) if isinstance(pointer, Pointer) else None
    if not isinstance(kind, PointerType):
        raise argument_error(
            f"{what} takes a pointer to global or shared memory, not {pointer!r}", how_to_make.ELEMENT_POINTER
        )
    raw = llvm_pointer_type(_address_space(what, kind)[0])
    return kind, emit("builtin.unrealized_conversion_cast", [pointer.value], [raw]).result


def _space_of_llvm(pointer: Any) -> str | None:
    """The address space of an `!llvm.ptr` that programs can access; None for anything else."""
    if not isinstance(pointer, ir.Value):
        return None
    text = str(pointer.type)
    return next((name for name, (space, _) in _SPACES.items() if text == str(llvm_pointer_type(space))), None)


def ptrtoint(pointer: AnyPointer) -> Result:
    """The address of a pointer in bytes: Int64, or in shared memory Int32, counted from the start of the LDS."""
    kind, address = address_of("ptrtoint", pointer, Int8)
    dtype = _address_space("ptrtoint", kind)[1]
    return dtype.of(emit("llvm.ptrtoint", [address], [dtype.ir_type]).result)


def inttoptr(result_type: PointerType, address: Number) -> Pointer:
    """A pointer from an address in bytes. The author must ensure that the memory exists and is aligned.

    result_type: `fx.PointerType.get(fx.Float32, fx.AddressSpace.Global)`.
    """
    if not isinstance(result_type, PointerType):
        hint = "fx.PointerType.get(fx.Float32, fx.AddressSpace.Global)"
        raise argument_error(f"inttoptr: the type must be a pointer type, got {result_type!r}", hint)
    space, dtype = _address_space("inttoptr", result_type)
    address = emit("llvm.inttoptr", [dtype(address).ir_value()], [llvm_pointer_type(space)]).result
    return Pointer(emit("builtin.unrealized_conversion_cast", [address], [result_type.ir]).result)


def _address_space(what: str, kind: PointerType) -> tuple[int, type[Integer]]:
    if kind.space not in _SPACES:
        raise argument_error(
            f"{what} of {kind}: {kind.space} has no addresses in bytes",
            "registers and buffers have none: take it of global or shared memory",
        )
    return _SPACES[kind.space]
