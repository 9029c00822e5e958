"""Static shared memory (LDS): one storage per kernel module, divided into typed parts.

    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="smem0")
    lds_a = allocator.allocate_array(T.f16, 8192)

    @flyc.kernel
    def kernel(...):
        a = lds_a(allocator.get_base())      # a SmemPtr
        a.store(value, [i])
        fx.gpu.barrier()
        value = a.load([j])

    @flyc.jit
    def launch(...):
        with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
            allocator.finalize()
        kernel(...).launch(...)

`ir` is MLIR's (`from mlir import ir`), `CompilationContext` is in `flydsl.compiler.kernel_function`. What the kernel
uses, together with the launch's dynamic memory, is compared with the target's capacity when it is compiled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from mlir import ir

from flydsl.arch import ARCHS, get_arch, launch_limits
from flydsl.dialect.elements import element_bits, element_type
from flydsl.dialect.location import argument_error, trace_error
from flydsl.errors import how_to_make
from flydsl.expr.gpu import lds_space
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Index, Int32, Numeric, as_numeric, numeric_class
from flydsl.expr.tracing.emit import emit, gpu_module_body, require_trace
from flydsl.expr.tracing.operands import located

__all__ = [
    "SMEM_CAPACITY_MAP", "SmemAllocator", "SmemPtr", "check_smem_capacity", "get_index_value", "get_mlir_type_align",
    "get_mlir_type_size", "get_op_result_or_value", "lds_space",
]  # fmt: skip

# Architecture -> bytes of LDS that a workgroup can have.
SMEM_CAPACITY_MAP = {arch.name: arch.lds_bytes_per_workgroup for arch in ARCHS}
# Instructions move at most 16 bytes, and the storage begins at a multiple of that and of every bank row.
_MAX_ALIGNMENT_BYTES = 16
_STORAGE_ALIGNMENT_BYTES = 128


def get_mlir_type_size(kind: Any) -> int:
    """Number of bytes in memory of an MLIR scalar or vector type, or of a scalar type of the DSL.

    >>> from flydsl.expr.typing import T, BFloat16
    >>> get_mlir_type_size(T.f32), get_mlir_type_size(BFloat16)
    (4, 2)
    """
    kind = _ir_type(kind)
    if isinstance(kind, ir.VectorType):
        return prod(kind.shape) * get_mlir_type_size(kind.element_type)
    bits = element_bits(str(kind))
    if bits % 8 and bits != 1:
        raise argument_error(f"{kind} has {bits} bits, not whole bytes", "use a type of 8 bits or a multiple")
    return -(-bits // 8)


def get_mlir_type_align(kind: Any) -> int:
    """The alignment of a type in bytes: the largest power of two that divides its size, at most 16."""
    size = get_mlir_type_size(kind)
    return min(size & -size, _MAX_ALIGNMENT_BYTES)


def _ir_type(kind: Any) -> ir.Type:
    if isinstance(kind, ir.Type):
        return kind
    if isinstance(kind, type) and issubclass(kind, Numeric) and hasattr(kind, "mlir_name"):
        return kind.ir_type
    raise argument_error(f"{kind!r} is not an element type", "pass T.f16 or fx.Float16, for example")


def get_op_result_or_value(value: Any) -> ir.Value:
    """The `ir.Value` behind a value of the DSL, an operation or a view."""
    if isinstance(value, ir.Value):
        return value
    if isinstance(value, ArithValue):
        return value.ir_value()
    if isinstance(value, ir.Operation | ir.OpView):
        return value.result
    raise argument_error(f"{value!r} is not a value of the program", how_to_make.NUMBER)


def get_index_value(value: Any) -> ir.Value:
    """An integer of any kind as an `ir.Value` of index type."""
    number = as_numeric(value)
    if not isinstance(number, Numeric) or number.is_float:
        raise argument_error(
            f"an index into LDS must be an integer, got {value!r}",
            "convert it: int(...) of a Python number, .to(fx.Int32) of a value of the device",
        )
    return Index.exactly(number).ir_value()


def check_smem_capacity(allocated_bytes: int, arch: str | None = None) -> None:
    """Raise LaunchError if a workgroup cannot have that many bytes of LDS. arch: None skips the check for now."""
    if arch is not None:
        located(launch_limits.check_lds, get_arch(arch), allocated_bytes)


class SmemPtr:
    """A typed part of the LDS.

    base_memref: the storage, from `SmemAllocator.get_base()`. byte_offset: offset of its first byte. shape: its
    extents, row-major; None for a single element.
    """

    def __init__(
        self, base_memref: ir.Value, byte_offset: int, element_type: Any, shape: Sequence[int] | None = None
    ) -> None:
        self.base_memref = base_memref
        self.byte_offset = byte_offset
        self.element_type = _ir_type(element_type)
        self.shape = None if shape is None else tuple(shape)
        # FlyDSL keeps a view here, and its programs set this to None where the view would not dominate its uses.
        self._view_cache: ir.Value | None = None

    def get(self) -> ir.Value:
        """A memref view, for example for `vector.load` and `vector.store`."""
        kind = ir.MemRefType.get(list(self._extents), self.element_type, memory_space=lds_space())
        offset = Index(self.byte_offset).ir_value()
        return emit("memref.view", [self.base_memref, offset], [kind]).result

    @property
    def _extents(self) -> tuple[int, ...]:
        return (1,) if self.shape is None else self.shape

    def load(self, idxs: Sequence[Any] | None = None) -> Any:
        """The element at `idxs`, one integer per dimension; by default the first one."""
        operands = [self.get(), *self._indices("load", idxs)]
        return as_numeric(emit("memref.load", operands, [self.element_type]).result)

    def store(self, val: Any, idxs: Sequence[Any] | None = None) -> None:
        """Write the element at `idxs`; a Python number takes the element type."""
        operands = [self._element(val), self.get(), *self._indices("store", idxs)]
        emit("memref.store", operands)

    def _indices(self, what: str, indices: Sequence[Any] | None) -> list[ir.Value]:
        given = [0] * len(self._extents) if indices is None else list(indices)
        if len(given) != len(self._extents):
            raise argument_error(
                f"{what} takes one index for each of the {len(self._extents)} dimensions of {self!r}, got {len(given)}",
                f"pass {len(self._extents)}",
            )
        values = [get_index_value(index) for index in given]
        for index, extent in zip(map(as_numeric, given), self._extents, strict=True):
            if index.is_static and not 0 <= int(index) < extent:
                raise argument_error(
                    f"the index of a {what} in LDS must be 0 to {extent - 1}, got {int(index)}", "indices count from 0"
                )
        return values

    def _element(self, value: Any) -> ir.Value:
        if not isinstance(value, ArithValue | ir.Value):
            value = numeric_class(self.element_type).exactly(value)
        operand = get_op_result_or_value(value)
        if operand.type != self.element_type:
            raise argument_error(f"LDS of {self.element_type} cannot hold {operand.type}", "convert it with .to(...)")
        return operand

    def llvm_pointer(self) -> ir.Value:
        """The address of the first element, as `!llvm.ptr<3>`."""
        index = emit("memref.extract_aligned_pointer_as_index", [self.base_memref], [Index.ir_type]).result
        address = Int32(Index.of(index)) + self.byte_offset
        return emit("llvm.inttoptr", [address.ir_value()], [ir.Type.parse("!llvm.ptr<3>")]).result

    def __repr__(self) -> str:
        shape = "x".join(map(str, self._extents))
        return f"SmemPtr({shape}x{self.element_type} at byte {self.byte_offset})"


class SmemStruct:
    """A structure in the LDS. Every field is an attribute, a `SmemPtr` to one element."""

    def __init__(self, base: ir.Value, byte_offset: int, fields: dict[str, tuple[int, ir.Type]]) -> None:
        for name, (offset, kind) in fields.items():
            setattr(self, name, SmemPtr(base, byte_offset + offset, kind))


class SmemAllocator:
    """Lays out static shared memory.

    ctx: unused, None. arch: the target, to check the capacity at every allocation; without it the check waits until
    a kernel is compiled. global_sym_name: the name of the storage in the program; allocators of one launcher need
    different ones.

    ptr: bytes in use so far. finalized: whether `finalize` has been called; nothing depends on it.
    """

    def __init__(self, ctx: Any = None, arch: str | None = None, global_sym_name: str = "smem_storage") -> None:
        if arch is not None:
            get_arch(arch)
        self.arch = arch
        self.global_sym_name = global_sym_name
        self.ptr = 0
        self.finalized = False

    def _align(self, offset: int, alignment: int) -> int:
        """The next multiple of `alignment`."""
        return -(-offset // alignment) * alignment

    def _reserve(self, size_bytes: int, alignment: int) -> int:
        """Reserve bytes and return their offset."""
        if alignment < 1 or alignment & (alignment - 1) or alignment > _STORAGE_ALIGNMENT_BYTES:
            raise argument_error(
                f"an alignment in LDS must be a power of two up to {_STORAGE_ALIGNMENT_BYTES}, got {alignment} bytes",
                "pass 16, for example",
            )
        offset = self._align(self.ptr, alignment)
        check_smem_capacity(offset + size_bytes, self.arch)
        self.ptr = offset + size_bytes
        return offset

    def allocate(self, what: Any, alignment: int | None = None) -> Callable[[ir.Value], Any]:
        """Allocate memory for a number of bytes, one element of a type, or a class whose annotations are types.

        Returns a function from the base, `get_base()`, to a `SmemPtr`, or for a class to a `SmemStruct`.
        """
        if isinstance(what, int):
            return self.allocate_array(element_type("i8"), what, alignment or 1)
        if isinstance(what, type) and not issubclass(what, Numeric):
            return self._allocate_struct(what, alignment)
        kind = _ir_type(what)
        offset = self._reserve(get_mlir_type_size(kind), alignment or get_mlir_type_align(kind))
        return lambda base: SmemPtr(base, offset, kind)

    def allocate_array(self, dtype: Any, num_elems: int, alignment: int | None = None) -> Callable[[ir.Value], SmemPtr]:
        """Allocate `num_elems` contiguous elements, by default aligned to their size.

        Use an alignment of 16 bytes to load vectors in one instruction.
        """
        kind = _ir_type(dtype)
        if not isinstance(num_elems, int) or num_elems < 1:
            raise argument_error(
                f"the size of an LDS array must be a positive integer, got {num_elems!r}",
                "pass a Python int: the size must be known at compile time",
            )
        offset = self._reserve(get_mlir_type_size(kind) * num_elems, alignment or get_mlir_type_align(kind))
        return lambda base: SmemPtr(base, offset, kind, (num_elems,))

    def _allocate_struct(self, cls: type, alignment: int | None) -> Callable[[ir.Value], SmemStruct]:
        fields: dict[str, tuple[int, ir.Type]] = {}
        end, align = 0, 1
        for name, annotation in inspect.get_annotations(cls, eval_str=True).items():
            kind = _ir_type(annotation)
            start = self._align(end, get_mlir_type_align(kind))
            fields[name] = start, kind
            end, align = start + get_mlir_type_size(kind), max(align, get_mlir_type_align(kind))
        if not fields:
            raise argument_error(
                f"{cls.__name__} has no annotated fields to allocate in LDS",
                "write them as in a dataclass: name: fx.Float32",
            )
        offset = self._reserve(self._align(end, align), alignment or align)
        return lambda base: SmemStruct(base, offset, fields)

    def _storage_type(self) -> ir.Type:
        size = self._align(max(self.ptr, 1), _STORAGE_ALIGNMENT_BYTES)
        return ir.MemRefType.get([size], element_type("i8"), memory_space=lds_space())

    def finalize(self) -> None:
        """Insert the storage into the program, at the insertion point: the body of the GPU module.

        Calling it again for the same program does nothing, so one allocator serves a launcher that is compiled for
        several kinds of arguments. Raises TraceError elsewhere than in a GPU module.
        """
        require_trace("SmemAllocator.finalize")
        block = ir.InsertionPoint.current.block
        if block.owner.operation.name != "gpu.module":
            raise trace_error(
                "SmemAllocator.finalize must be called in the GPU module",
                "with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body): allocator.finalize()",
            )
        self.finalized = True
        if self._storage(block) is None:
            # Public: programs read it by numbers, from address 0. LLVM drops private memory that is only written.
            attributes = {
                "sym_name": ir.StringAttr.get(self.global_sym_name),
                "type": ir.TypeAttr.get(self._storage_type()),
                "initial_value": ir.UnitAttr.get(),
                "alignment": ir.IntegerAttr.get(element_type("i64"), _STORAGE_ALIGNMENT_BYTES),
            }
            emit("memref.global", attributes=attributes)
        else:
            self._check_unchanged(block)

    def _storage(self, module_body: ir.Block) -> ir.Operation | None:
        """The storage of this name in a GPU module."""
        for op in module_body.operations:
            named = "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value
            if named == self.global_sym_name:
                return op.operation
        return None

    def _check_unchanged(self, module_body: ir.Block) -> None:
        storage = self._storage(module_body)
        if storage is None:
            return
        if storage.name != "memref.global" or ir.TypeAttr(storage.attributes["type"]).value != self._storage_type():
            raise trace_error(
                f"the LDS storage {self.global_sym_name!r} has changed: another allocator has this name, or memory was "
                "allocated after finalize()",
                "give every SmemAllocator its own global_sym_name, and allocate before finalize()",
            )

    def get_base(self) -> ir.Value:
        """The storage, inside a kernel."""
        require_trace("SmemAllocator.get_base")
        body = gpu_module_body()
        if body is None:
            raise trace_error("SmemAllocator.get_base outside a kernel", "call it inside a @flyc.kernel function")
        self._check_unchanged(body)
        name = {"name": ir.FlatSymbolRefAttr.get(self.global_sym_name)}
        return emit("memref.get_global", results=[self._storage_type()], attributes=name).result
