"""Descriptors of the tensor data mover of gfx1250: a tile or rows of a matrix, and their place in LDS.

What each register holds: `plane_group` and `first_group`; AMD's kernels for gfx1250 and LLVM's tests are the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mlir import ir

from flydsl.atoms.instruction_sets import GFX1250
from flydsl.dialect.location import argument_error
from flydsl.expr.arith import minui
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Int32, Int64, Uint32, as_numeric
from flydsl.expr.rocdl.ids import wave_id
from flydsl.expr.rocdl.intrinsic import as_type, llvm_pointer, require_target
from flydsl.expr.rocdl.lds_address import lds_address
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.immediates import immediate

GLOBAL = 1
EXTENT_MAX = 0xFFFF_FFFF
_DWORD_BYTES = 4
FIELD_MAX = 0xFFFF  # a field of 16 bits: the extents of a tile, a mask of workgroups
PREDICATE, _TYPE, _GATHER, _INDICES_OF_32_BITS = 1, 2 << 30, 1 << 31, 1 << 30


class TDMDescriptor2D(NamedTuple):
    """A tile of a matrix and its place in LDS. dgroup0: addresses, 4 words; dgroup1: extents, 8 words."""

    dgroup0: Any
    dgroup1: Any


class TDMGatherDescriptor(NamedTuple):
    """Rows of a matrix by their numbers, and their place in LDS. dgroup2, dgroup3: the numbers, 4 words each."""

    dgroup0: Any
    dgroup1: Any
    dgroup2: Any
    dgroup3: Any


# --- what an issue needs to know -------------------------------------------------------------------------------------


def compute_warp_distribution(block_shape: Sequence[int], num_warps: int) -> tuple[list[int], list[int]]:
    """The numbers of waves along each dimension of a tile, and the tile of one wave.

    Waves double along the outer dimension while each has a row of its own; the rest go along the inner one.

    >>> compute_warp_distribution((128, 64), 4), compute_warp_distribution((2, 64), 8)
    (([4, 1], [32, 64]), ([2, 4], [1, 16]))
    """
    outer, inner = block_shape
    rows = 1
    while rows < num_warps and 2 * rows <= outer:
        rows *= 2
    columns = num_warps // rows
    if num_warps < 1 or rows * columns != num_warps or outer % rows or inner % columns:
        raise argument_error(
            f"a tile of {outer} x {inner} does not divide among {num_warps} waves",
            "pass a power of two that divides the rows, or the rows times the columns",
        )
    return [rows, columns], [outer // rows, inner // columns]


def compute_padding_encoding(pad_interval: int, pad_amount: int, elem_bits: int = 16) -> tuple[int, int]:
    """The two fields of a descriptor for `pad_amount` elements after each `pad_interval` elements in LDS.

    >>> compute_padding_encoding(64, 8, 16)
    (4, 3)
    """
    interval, amount = (number * elem_bits // 32 for number in (pad_interval, pad_amount))
    if interval * 32 != pad_interval * elem_bits or interval not in (2, 4, 8, 16, 32, 64, 128, 256):
        raise argument_error(
            "pad_interval must be 2 to 256 words of 32 bits, a power of two, got "
            f"{pad_interval} elements of {elem_bits} bits",
            "pass the elements of a row, for example",
        )
    if amount * 32 != pad_amount * elem_bits or not 1 <= amount <= 128:
        raise argument_error(
            f"pad_amount must be 1 to 128 words of 32 bits, got {pad_amount} elements of {elem_bits} bits",
            "pass as many elements as fill whole words",
        )
    return interval.bit_length() - 2, amount - 1


@dataclass(frozen=True)
class Padding:
    """Padding in LDS. interval, amount: elements; 0 for none."""

    interval: int
    amount: int

    def extent(self, elements: int) -> int:
        """The space of some elements in LDS, with the padding after them; they begin where an interval does."""
        if not self.interval or elements * 2 <= self.interval:
            return elements
        if elements % self.interval:
            raise argument_error(
                f"a wave's part of a tile has {elements} elements, with padding after each {self.interval}",
                "as many whole intervals for each wave, or fewer waves",
            )
        return elements + elements // self.interval * self.amount


def _log2_bytes(elem_bytes: Any) -> int:
    size = immediate("elem_bytes of a tensor descriptor", elem_bytes, 1, 8)
    if size not in (1, 2, 4, 8):
        raise argument_error(
            f"the elements of a tensor descriptor must have 1, 2, 4 or 8 bytes, got {size}",
            "describe the memory as elements of such a size",
        )
    return size.bit_length() - 1


# --- descriptors -----------------------------------------------------------------------------------------------------


def make_tensor_descriptor_2d(
    global_ptr: Any,
    lds_memref: Any,
    global_offset: tuple[Any, Any],
    tensor_shape: tuple[Any, Any],
    strides: tuple[Any, Any],
    tile_shape: tuple[int, int],
    elem_bytes: int = 2,
    pad_interval: int = 0,
    pad_amount: int = 0,
    num_warps: int = 1,
    cache_policy: int = 0,
    pred: int = 1,
    workgroup_mask: Any = 0,
    lds_byte_offset: Any = None,
    for_store: bool = False,
    atomic_barrier_enable: bool = False,
    early_timeout: bool = False,
    oob_outer_bound: Any = None,
) -> TDMDescriptor2D:
    """A descriptor of a tile, or of this wave's part of it.

    global_ptr: the tensor, or its address. lds_memref: a place in LDS, and lds_byte_offset bytes after it.
    global_offset: the tile's first element, at least 0. tensor_shape: elements from there on; beyond them loads give 0
    and stores do nothing. oob_outer_bound: the rows of the whole tensor, where they may end inside the tile.
    strides: elements from row to row, and 1. tile_shape: the tile's extents.
    pad_interval, pad_amount: in LDS, pad_amount elements of padding after each pad_interval elements. for_store: for
    a store, which skips the padding as columns beyond the tensor; then an interval is a row.
    num_warps: the waves of the workgroup among which the tile is divided, see `compute_warp_distribution`.
    cache_policy: as FlyDSL has it, part of no descriptor; that of `tensor_load_2d` counts. pred: 0 moves nothing.
    workgroup_mask: the workgroups of the cluster that ask for the same tile, this one among them, so that memory is
    read once. Each has to ask, and gets the tile into its own LDS. early_timeout: do not wait long for the others.
    atomic_barrier_enable: a bit of the descriptor, whose barrier is that at address 0 of LDS.
    """
    require_target("make_tensor_descriptor_2d", GFX1250)
    rows, columns = (immediate("the tile_shape of a tensor descriptor", size, 1, FIELD_MAX) for size in tile_shape)
    (_, waves), (part_rows, part_columns) = compute_warp_distribution((rows, columns), num_warps)
    padding = Padding(pad_interval, pad_amount)
    if for_store and pad_interval not in (0, part_columns):
        raise argument_error(
            f"a store of rows of {part_columns} elements with padding after each {pad_interval}",
            "pad_interval is the length of a row",
        )
    start, lds_start = [Int64(0), Int64(0)], Int32(0)
    if num_warps > 1:
        wave = Uint32(wave_id())
        row, column = (wave // waves, wave % waves) if waves > 1 else (wave, Uint32(0))
        start = [Int64(row * part_rows), Int64(column * part_columns)]
        lds_start = Int32(
            (row * padding.extent(part_rows * columns) + column * padding.extent(part_columns)) * elem_bytes
        )
    first = [Int64(unsigned(given)) + own for given, own in zip(global_offset, start, strict=True)]
    address = global_address(global_ptr) + (first[0] * Int64(unsigned(strides[0])) + first[1]) * elem_bytes
    extents = [
        remaining(extent, size, own)
        for extent, size, own in zip(tensor_shape, (rows, columns), start, strict=True)
    ]  # fmt: skip
    if oob_outer_bound is not None:
        extents[0] = _at_least_zero(Int64(unsigned(oob_outer_bound)) - first[0])
    tile = (part_rows, part_columns)
    if for_store and pad_interval:
        tile, extents[1] = (part_rows, part_columns + pad_amount), _at_most(extents[1], part_columns)
    place = lds_address("make_tensor_descriptor_2d", lds_memref, 0 if lds_byte_offset is None else lds_byte_offset)
    bits = descriptor_bits(elem_bytes, None if for_store else padding, atomic_barrier_enable, early_timeout)
    return TDMDescriptor2D(
        first_group(PREDICATE * immediate("pred", pred, 0, 1), place + lds_start, address),
        plane_group(bits, workgroup_mask, extents[::-1], tile[::-1], strides[:1]),
    )


def remaining(extent: Any, tile: int, own: Int64) -> Any:
    """Elements of the tensor from this wave's first one on. Where the whole tile lies inside, that is not asked."""
    if isinstance(extent, int) and extent >= tile:
        return immediate("the tensor_shape of a tensor descriptor", extent, 1, EXTENT_MAX)
    return _at_least_zero(Int64(unsigned(extent)) - own)


def _at_most(extent: Any, limit: int) -> Any:
    """An extent, or a limit that is less."""
    if isinstance(extent, int):
        return min(extent, limit)
    return Int32(minui(Int32(extent), Int32(limit)))


def _at_least_zero(number: Int64) -> Int32:
    """The number, or 0; what the scalar unit does with 32 bits at a time."""
    return Int32(number) & ~Int32(number >> 63)


def unsigned(number: Any) -> Any:
    """A number as Int64 without a sign: an Int32 is not extended with its sign."""
    value = as_numeric(number)
    return Uint32(value) if getattr(value, "is_static", True) is False and value.dtype is Int32 else value


def global_address(pointer: Any) -> Int64:
    """The address of a tensor, of a pointer, or the address itself."""
    if isinstance(pointer, Int64) or (isinstance(pointer, ir.Value) and str(pointer.type) == "i64"):
        return Int64(as_numeric(pointer))
    address = llvm_pointer("the global memory of a tensor descriptor", pointer, GLOBAL)
    return Int64.of(emit("llvm.ptrtoint", [address], [Int64.ir_type]).result)


def first_group(first: int, place: Int32, address: Int64) -> Vector:
    """Predicate and mode, address in LDS, address in global memory with the type of the descriptor in its top bits."""
    high = Int32(address >> 32) | signed_word(_TYPE)
    return Vector.from_elements([Int32(signed_word(first)), place, Int32(address), high], Int32)


def descriptor_bits(elem_bytes: int, padding: Padding | None, atomic_barrier: bool, early_timeout: bool) -> int:
    """The first word of group 1 above the mask of workgroups."""
    bits = _log2_bytes(elem_bytes) << 16 | bool(atomic_barrier) << 18 | bool(early_timeout) << 21
    if padding is not None and padding.interval and padding.amount:
        interval, amount = compute_padding_encoding(padding.interval, padding.amount, elem_bytes * 8)
        bits |= 1 << 20 | interval << 22 | amount << 25
    return bits


def plane_group(bits: int, mask: Any, extents: Sequence[Any], tile: Sequence[Any], strides: Sequence[Any]) -> Vector:
    """Group 1. Mask and bits; the tensor's extents, 32 bits each from bit 48 on; the tile's, 16 each; two strides.

    extents, tile, strides: the inner dimension first; a third extent of the tile or second stride is 0 of a plane.
    """
    inner, outer = (Int32(signed_word(extent)) if isinstance(extent, int) else Int32(extent) for extent in extents)
    if isinstance(mask, int):
        first = Int32(signed_word(bits | immediate("the workgroup_mask of a tensor descriptor", mask, 0, FIELD_MAX)))
    else:
        first = Int32(mask) | signed_word(bits)
    columns, rows, *planes = tile
    words = [
        first,
        inner << 16,
        high_half(inner) | (outer << 16),
        high_half(outer) | signed_word(columns << 16),
        Int32(rows) | signed_word(planes[0] << 16) if planes else Int32(rows),
    ]
    if len(strides) == 1:
        words += [Int32(unsigned(strides[0])), Int32(0), Int32(0)]
    else:
        row, plane = (Int64(unsigned(stride)) for stride in strides)
        words += [Int32(row), _field_16(row >> 32) | (Int32(plane) << 16), Int32(plane >> 16)]
    return Vector.from_elements(words, Int32)


def _field_16(number: Int64) -> Int32:
    return Int32(number) & FIELD_MAX


def high_half(word: Int32) -> Int32:
    return Int32(Uint32(word) >> 16)


def signed_word(word: int) -> int:
    """A word of 32 bits as the number that an Int32 has."""
    return word - (1 << 32) if word >> 31 else word


# --- rows by number --------------------------------------------------------------------------------------------------


def make_tensor_gather_dgroup0(
    global_ptr: Any = None,
    lds_memref: Any = None,
    *,
    index_size: int = 32,
    lds_byte_offset: Any = None,
    global_byte_offset: Any = None,
) -> Vector:
    """The addresses of a gather descriptor. index_size: bits of a row's number, 16 or 32."""
    require_target("make_tensor_gather_dgroup0", GFX1250)
    if index_size not in (16, 32):
        raise argument_error(f"index_size must be 16 or 32 bits, got {index_size!r}", "pass index_size=32, for example")
    address = global_address(global_ptr)
    if global_byte_offset is not None:
        address = address + Int64(unsigned(global_byte_offset))
    place = lds_address("make_tensor_gather_dgroup0", lds_memref, 0 if lds_byte_offset is None else lds_byte_offset)
    return first_group(PREDICATE | _GATHER | (_INDICES_OF_32_BITS if index_size == 32 else 0), place, address)


def make_tensor_gather_descriptor(
    global_ptr: Any,
    lds_memref: Any,
    row_indices: Sequence[Any],
    row_width: int,
    tensor_dim0: Any,
    tensor_dim1: Any,
    stride: Any,
    elem_bytes: int = 1,
    pad_interval: int = 0,
    pad_amount: int = 0,
    index_size: int = 32,
    gather_tile_dim1: Any = None,
    lds_byte_offset: Any = None,
    global_byte_offset: Any = None,
    workgroup_mask: Any = 0,
) -> TDMGatherDescriptor:
    """A descriptor of up to 8 rows by numbers of 32 bits, or 16 rows by numbers of 16.

    row_width: elements of a row that are copied. tensor_dim0: elements of a row; tensor_dim1: rows of the tensor, and
    a row whose number is not below is skipped. stride: elements from row to row. gather_tile_dim1: how many of the
    numbers count, by default all. The rest is as for `make_tensor_descriptor_2d`.
    """
    group0 = make_tensor_gather_dgroup0(global_ptr, lds_memref, index_size=index_size, lds_byte_offset=lds_byte_offset,
                                        global_byte_offset=global_byte_offset)  # fmt: skip
    most = 8 * 32 // index_size
    if not 1 <= len(row_indices) <= most:
        raise argument_error(
            f"a gather takes 1 to {most} rows with numbers of {index_size} bits, got {len(row_indices)}",
            "gather in several calls",
        )
    width = immediate("the row_width of a gather descriptor", row_width, 1, FIELD_MAX)
    if width * elem_bytes % _DWORD_BYTES:
        raise argument_error(
            f"the bytes of a row must be a multiple of {_DWORD_BYTES}, got {width * elem_bytes}",
            "make the rows whole dwords",
        )
    count = len(row_indices) if gather_tile_dim1 is None else gather_tile_dim1
    bits = descriptor_bits(elem_bytes, Padding(pad_interval, pad_amount), False, False)
    group1 = plane_group(bits, workgroup_mask, (tensor_dim0, tensor_dim1), (width, count), [stride])
    words = _index_words([Int32(unsigned(index)) for index in row_indices], index_size)
    words += [Int32(0)] * (8 - len(words))
    return TDMGatherDescriptor(
        group0, group1, Vector.from_elements(words[:4], Int32), Vector.from_elements(words[4:], Int32)
    )


def _index_words(indices: list[Int32], index_size: int) -> list[Int32]:
    if index_size == 32:
        return indices
    padded = indices + [Int32(0)] * (len(indices) % 2)
    return [(low & FIELD_MAX) | (high << 16) for low, high in zip(padded[::2], padded[1::2], strict=True)]


# --- other addresses -------------------------------------------------------------------------------------------------


def add_addr_with_carry(base_addr_lo: Any, base_addr_hi: Any, delta_i32: Any) -> tuple[Int32, Int32]:
    """The two words of an address plus bytes, 32 bits without a sign. The bits above the address stay as they are."""
    moved = _address(base_addr_lo, base_addr_hi) + Int64(Uint32(Int32(delta_i32)))
    return Int32(moved), Int32(moved >> 32)


def _address(low: Any, high: Any) -> Int64:
    return (Int64(Uint32(high)) << 32) | Int64(Uint32(low))


def words_of(what: str, group: Any, count: int) -> ir.Value:
    return as_type(what, group, ir.VectorType.get([count], Int32.ir_type))


def _replaced(group0: Any, words: dict[int, Any]) -> Vector:
    group = Vector(words_of("the addresses of a descriptor", group0, 4), dtype=Int32)
    return Vector.from_elements([Int32(words.get(i, group[i])) for i in range(4)], Int32)


def _moved(desc: Any, words: dict[int, Any]) -> Any:
    return _checked(desc)._replace(dgroup0=_replaced(desc.dgroup0, words))


def _checked(desc: Any) -> TDMDescriptor2D | TDMGatherDescriptor:
    if isinstance(desc, TDMDescriptor2D | TDMGatherDescriptor):
        return desc
    raise argument_error(f"{desc!r} is not a tensor descriptor", "make one with make_tensor_descriptor_2d(...)")


def update_tensor_descriptor_2d_addr_lo(desc: Any, new_addr_lo: Any) -> Any:
    """The descriptor with another lower word of the address in global memory."""
    return _moved(desc, {2: new_addr_lo})


def update_tensor_descriptor_2d_addr_lo_hi(desc: Any, new_addr_lo: Any, new_addr_hi: Any) -> Any:
    """The descriptor with another address in global memory. The upper word has the descriptor's type, too."""
    return _moved(desc, {2: new_addr_lo, 3: new_addr_hi})


def update_tensor_descriptor_2d_addr64(desc: Any, base_addr_lo: Any, base_addr_hi: Any, delta_i32: Any) -> Any:
    """The descriptor at an address plus bytes; see `add_addr_with_carry`."""
    low, high = add_addr_with_carry(base_addr_lo, base_addr_hi, delta_i32)
    return _moved(desc, {2: low, 3: high})


def advance_tdm_descriptor(desc: Any, byte_offset: Any) -> Any:
    """The descriptor of a tile that many bytes further in global memory, before it if they are negative.

    All else stays, also the extents: for a walk along a dimension that whole tiles fill.
    """
    words = Vector(words_of("the addresses of a descriptor", _checked(desc).dgroup0, 4), dtype=Int32)
    moved = _address(words[2], words[3]) + Int64(byte_offset)
    return _moved(desc, {2: Int32(moved), 3: Int32(moved >> 32)})


def update_tensor_descriptor_2d_lds_addr(desc: Any, new_lds_addr: Any) -> Any:
    """The descriptor with another place in shared memory, such as another stage of a pipeline; in bytes."""
    return _moved(desc, {1: new_lds_addr})


update_tensor_gather_descriptor_addr_lo = update_tensor_descriptor_2d_addr_lo
update_tensor_gather_descriptor_addr_lo_hi = update_tensor_descriptor_2d_addr_lo_hi
update_tensor_gather_descriptor_addr64 = update_tensor_descriptor_2d_addr64
