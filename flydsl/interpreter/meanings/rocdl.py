"""The meaning of AMD's instructions that programs call by name, as ROCDL operations or LLVM's intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.location import source_location
from flydsl.interpreter.elements import Array, element_name, from_bits, recast, rounded, to_bits
from flydsl.interpreter.execution import Execution, NotInterpreted, means
from flydsl.interpreter.meanings.access import load, store
from flydsl.interpreter.meanings.copies import (
    compare_and_swap,
    of_first_lanes,
    to_lds,
    transposed,
    transposed_of_eight,
    update,
)
from flydsl.interpreter.memory import Pointer, ResourceSpace


def _intrinsic(name: str) -> tuple[str, str]:
    """The ROCDL operation of a name, and LLVM's intrinsic."""
    return f"rocdl.{name}", f"llvm.amdgcn.{name}"


# --- nothing that is seen: memory is in order, and time does not pass ------------------------------------------------


@means(
    "rocdl.s.wait.*", "rocdl.sched.*", *_intrinsic("s.waitcnt"), *_intrinsic("iglp.opt"), *_intrinsic("s.setprio"),
    *_intrinsic("s.nop"), *_intrinsic("s.setreg"), "rocdl.s.barrier.signal", "rocdl.asyncmark",
    "rocdl.wait.asyncmark", "rocdl.wave.barrier", *_intrinsic("global.prefetch"), *_intrinsic("flat.prefetch"),
    "llvm.amdgcn.sched.barrier", "llvm.amdgcn.sched.group.barrier", "llvm.amdgcn.wave.barrier", "llvm.prefetch",
)  # fmt: skip
def _nothing(x: Execution, op: ir.Operation, *operands: Any) -> None:
    """Do nothing."""


@means(*_intrinsic("s.sleep"))
def _sleep(x: Execution, op: ir.Operation, *operands: Any) -> None:
    x.turn(waits=True)


# --- lanes -----------------------------------------------------------------------------------------------------------


@means(*_intrinsic("mbcnt.lo"), *_intrinsic("mbcnt.hi"))
def _mbcnt(x: Execution, op: ir.Operation, mask: Array, start: Array) -> Array:
    """The ones of a mask's half below each lane, and a start."""
    name = op.name if op.name != "llvm.call_intrinsic" else str(op.attributes["intrin"])
    lane = x.lane_numbers() % x.wave_size - (32 if ".hi" in name else 0)
    below = np.where(lane <= 0, 0, np.where(lane >= 32, 0xFFFFFFFF, (1 << np.clip(lane, 0, 31)) - 1))
    chosen = np.ascontiguousarray(mask).view(np.uint32).astype(np.int64) & below
    ones = np.unpackbits(chosen.astype(np.uint32)[:, None].view(np.uint8), axis=1).sum(axis=1)
    return (ones + start).astype(np.int32)


@means(*_intrinsic("readfirstlane"))
def _readfirstlane(x: Execution, op: ir.Operation, value: Array) -> Array:
    return of_first_lanes(x, value)


@means(*_intrinsic("readlane"))
def _readlane(x: Execution, op: ir.Operation, value: Array, lane: Array) -> Array:
    if len(value) == 1:
        return value
    return moved(x, value, np.broadcast_to(lane, (x.lanes,)).astype(np.int64) % x.wave_size)


@means(*_intrinsic("writelane"))
def _writelane(x: Execution, op: ir.Operation, value: Array, lane: Array, old: Array) -> Array:
    return np.where(x.lane_numbers() % x.wave_size == lane % x.wave_size, value, old)


def moved(x: Execution, value: Array, source: Array) -> Array:
    """The value of the lane of each wave that `source` numbers, for each lane."""
    waves, lanes = x.by_waves(value), x.by_waves(source)
    return x.by_lanes(waves[np.arange(len(waves))[:, None], lanes])


def _active(x: Execution, value: Array) -> Array:
    """A value of each lane, 0 of those that are not active."""
    return np.where(x.mask, x.spread(value), np.zeros(1, value.dtype))


@means(*_intrinsic("ds.bpermute"), "rocdl.ds_bpermute")
def _bpermute(x: Execution, op: ir.Operation, address: Array, value: Array) -> Array:
    return moved(x, _active(x, value), (x.spread(address).astype(np.int64) >> 2) & (x.wave_size - 1))


@means(*_intrinsic("ds.bpermute.fi.b32"))
def _bpermute_fi(x: Execution, op: ir.Operation, address: Array, value: Array) -> Array:
    return moved(x, value, (x.spread(address).astype(np.int64) >> 2) & (x.wave_size - 1))


@means(*_intrinsic("ds.permute"))
def _permute(x: Execution, op: ir.Operation, address: Array, value: Array) -> Array:
    """Each active lane writes to the lane that its address names; the highest one wins, 0 where none writes."""
    target = x.by_waves((x.spread(address).astype(np.int64) >> 2) & (x.wave_size - 1))
    values, active = x.by_waves(value), x.by_waves(x.mask)
    made = np.zeros_like(values)
    for wave, lane in zip(*np.nonzero(active), strict=True):
        made[wave, target[wave, lane]] = values[wave, lane]
    return x.by_lanes(made)


@means("rocdl.ds_swizzle", "llvm.amdgcn.ds.swizzle")
def _swizzle(x: Execution, op: ir.Operation, value: Array, pattern: Array) -> Array:
    number, lane = int(pattern[0]) & 0xFFFF, np.arange(x.lanes) % x.wave_size
    if number >= 0xC000:
        raise _refused(op, f"ds_swizzle with the pattern {number:#x}")
    if number & 0x8000:
        source = (lane & ~3) | ((number >> (2 * (lane & 3))) & 3)
    else:
        within = ((lane & (number & 31)) | ((number >> 5) & 31)) ^ ((number >> 10) & 31)
        source = (lane & 32) | within
    return moved(x, _active(x, value), source)


@means("rocdl.update.dpp")
def _update_dpp(x: Execution, op: ir.Operation, old: Array, value: Array) -> Array:
    numbers = [int(op.attributes[name].value) for name in ("dppCtrl", "rowMask", "bankMask")]
    control, row_mask, bank_mask = numbers
    lane = np.arange(x.lanes) % x.wave_size
    source, inside = _dpp_source(op, control, lane, x.wave_size)
    if np.issubdtype(value.dtype, np.bool_):
        value = value.astype(np.int8)
    found = moved(x, value, np.where(inside, source, 0))
    valid = inside & moved(x, x.mask, np.where(inside, source, 0))
    enabled = ((row_mask >> (lane // 16)) & 1 & (bank_mask >> (lane % 16 // 4))).astype(np.bool_)
    other = np.zeros(1, found.dtype) if bool(op.attributes["boundCtrl"].value) else old
    return np.where(enabled, np.where(valid, found, other), old)


def _dpp_source(op: ir.Operation, control: int, lane: Array, wave: int) -> tuple[Array, Array]:
    """The lane that each lane reads, and whether there is one (ISA, "DPP_CTRL")."""
    everywhere = np.ones(lane.shape, np.bool_)
    row, place = lane & ~15, lane & 15
    distance = control & 15
    if control < 0x100:
        return (lane & ~3) | ((control >> (2 * (lane & 3))) & 3), everywhere
    if 0x101 <= control <= 0x10F:
        return row + place + distance, place + distance < 16
    if 0x111 <= control <= 0x11F:
        return row + place - distance, place >= distance
    if 0x121 <= control <= 0x12F:
        return row + (place - distance) % 16, everywhere
    if control in (0x130, 0x138):
        source = lane + (1 if control == 0x130 else -1)
        return source, (source >= 0) & (source < wave)
    if control in (0x134, 0x13C):
        return (lane + (1 if control == 0x134 else -1)) % wave, everywhere
    if control == 0x140:
        return row + 15 - place, everywhere
    if control == 0x141:
        return (lane & ~7) + 7 - (lane & 7), everywhere
    if control == 0x142:
        return np.maximum(row - 1, 0), lane >= 16
    if control == 0x143:
        return np.full(lane.shape, 31), lane >= 32
    if 0x150 <= control <= 0x15F:
        return row + distance, everywhere
    if 0x160 <= control <= 0x16F:
        return row + (place ^ distance), everywhere
    raise _refused(op, f"the DPP control {control:#x}")


@means("rocdl.permlane16.swap", "rocdl.permlane32.swap")
def _permlane_swap(x: Execution, op: ir.Operation, old: Array, value: Array) -> tuple[Array, Array]:
    """Swap the odd rows of the first with the even ones of the second."""
    width = 16 if "16" in op.name else 32
    first, second = (x.by_waves(v).reshape(-1, x.wave_size // (2 * width), 2, width) for v in (old, value))
    a, b = first.copy(), second.copy()
    a[:, :, 1], b[:, :, 0] = second[:, :, 0], first[:, :, 1]
    return tuple(x.by_lanes(part.reshape(-1, x.wave_size)) for part in (a, b))  # type: ignore[return-value]


@means(*_intrinsic("permlanex16"))
def _permlanex16(x: Execution, op: ir.Operation, old: Array, value: Array, low: Array, high: Array, *_: Any) -> Array:
    lane = np.arange(x.lanes) % x.wave_size
    words = np.where(lane % 16 < 8, x.spread(low), x.spread(high)).astype(np.int64)
    chosen = (words >> (4 * (lane % 8))) & 15
    return moved(x, value, ((lane & ~15) ^ 16) + chosen)


@means(*_intrinsic("ballot"))
def _ballot(x: Execution, op: ir.Operation, condition: Array) -> Array:
    holds = x.by_waves(x.mask & x.spread(condition))
    weights = np.left_shift(np.uint64(1), np.arange(x.wave_size, dtype=np.uint64))
    words = (holds * weights).sum(axis=1, dtype=np.uint64)
    lanes = x.by_lanes(np.repeat(words[:, None], x.wave_size, axis=1))
    return lanes.view(np.int64) if element_name(op.result.type) == "i64" else lanes.astype(np.uint32).view(np.int32)


@means("rocdl.wavefrontsize", "llvm.amdgcn.wavefrontsize")
def _wavefrontsize(x: Execution, op: ir.Operation) -> Array:
    return np.array([x.wave_size], np.int32)


@means("llvm.amdgcn.wave.id")
def _wave_id(x: Execution, op: ir.Operation) -> Array:
    return (x.lane_numbers() // x.wave_size).astype(np.int32)


@means("llvm.amdgcn.endpgm")
def _endpgm(x: Execution, op: ir.Operation) -> None:
    raise _refused(op, "the end of a wave in the middle of its program")


@means(*_intrinsic("perm"))
def _perm(x: Execution, op: ir.Operation, high: Array, low: Array, selector: Array) -> Array:
    """Bytes of two words by their numbers: 0 to 3 of the second, 4 to 7 of the first, 8 to 11 signs, 12 zero."""
    lanes = max(map(len, (high, low, selector)))
    words = [np.broadcast_to(v, (lanes,)).copy().view(np.uint8).reshape(lanes, 4) for v in (low, high, selector)]
    both = np.concatenate(words[:2], axis=1)
    signs = np.where(both[:, [1, 3, 5, 7]] & 0x80, 0xFF, 0).astype(np.uint8)
    constants = np.broadcast_to(np.array([0] + [0xFF] * 243, np.uint8), (lanes, 244))
    table = np.concatenate([both, signs, constants], axis=1)
    return np.ascontiguousarray(np.take_along_axis(table, words[2].astype(np.int64), axis=1)).view(np.int32)[:, 0]


# --- numbers ---------------------------------------------------------------------------------------------------------


_FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "exp2": np.exp2, "log": np.log2, "rcp": lambda v: 1 / v, "sqrt": np.sqrt, "rsq": lambda v: 1 / np.sqrt(v),
    "sin": lambda v: np.sin(2 * np.pi * v), "cos": lambda v: np.cos(2 * np.pi * v), "tanh": np.tanh,
    "fract": lambda v: v - np.floor(v),
}  # fmt: skip


def _function(function: Callable[[Array], Any]) -> Callable[..., Any]:
    def meaning(x: Execution, op: ir.Operation, value: Array) -> Array:
        return rounded(function(value.astype(np.float64)), element_name(op.result.type))

    return meaning


for _name, _made in _FUNCTIONS.items():
    means(*_intrinsic(_name))(_function(_made))


@means(*_intrinsic("fmed3"))
def _fmed3(x: Execution, op: ir.Operation, a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _eight_bits(x: Execution, name: str) -> str:
    """The element type of `fp8` or `bf8` on the architecture."""
    fnuz = "FNUZ" if set(x.arch.float8_conversions) & {"f8E4M3FNUZ"} else ""
    return {"fp8": f"f8E4M3{fnuz or 'FN'}", "bf8": f"f8E5M2{fnuz}"}[name]


def _named_format(op: ir.Operation) -> str:
    return "bf8" if "bf8" in op.name else "fp8"


def _saturated_codes(x: Execution, op: ir.Operation, values: Array) -> Array:
    return to_bits(values.astype(np.float32), _eight_bits(x, _named_format(op)))


@means("rocdl.cvt.pk.fp8.f32", "rocdl.cvt.pk.bf8.f32")
def _pack_eight_bits(x: Execution, op: ir.Operation, low: Array, high: Array, old: Array) -> Array:
    """The old word with one half replaced by two numbers rounded to 8 bits."""
    codes = [_saturated_codes(x, op, value).astype(np.int64) for value in (low, high)]
    half = codes[0] | codes[1] << 8
    shift = 16 if bool(op.attributes["wordSel"].value) else 0
    kept = old.astype(np.int64) & (0xFFFF if shift else 0xFFFF0000)
    return (kept | half << shift).astype(np.uint32).view(np.int32)


@means("rocdl.cvt.pk.f32.fp8", "rocdl.cvt.pk.f32.bf8")
def _unpack_eight_bits(x: Execution, op: ir.Operation, word: Array) -> Array:
    shift = 16 if bool(op.attributes["wordSel"].value) else 0
    codes = word.astype(np.int64)[:, None] >> np.array([shift, shift + 8]) & 0xFF
    return from_bits(codes, _eight_bits(x, _named_format(op)))


@means("rocdl.cvt.f32.fp8", "rocdl.cvt.f32.bf8")
def _unpack_eight_bits_one(x: Execution, op: ir.Operation, word: Array) -> Array:
    code = word.astype(np.int64) >> 8 * int(op.attributes["byteSel"].value) & 0xFF
    return from_bits(code, _eight_bits(x, _named_format(op)))


@means("rocdl.cvt.pkrtz", "llvm.amdgcn.cvt.pkrtz")
def _pkrtz(x: Execution, op: ir.Operation, low: Array, high: Array) -> Array:
    """Two numbers as f16, rounded toward zero."""
    lanes = max(len(low), len(high))
    pair = np.stack([np.broadcast_to(value, (lanes,)) for value in (low, high)], axis=1)
    near = pair.astype(np.float16)
    too_far = np.abs(near.astype(np.float32)) > np.abs(pair)
    return np.where(too_far, np.nextafter(near, np.float16(0)), near)


@means("llvm.amdgcn.cvt.off.f32.i4")
def _cvt_off(x: Execution, op: ir.Operation, word: Array) -> Array:
    low = word.astype(np.int64) & 15
    return ((low - (low >> 3 << 4)) / 16).astype(np.float32)


# --- buffers ---------------------------------------------------------------------------------------------------------


@means("rocdl.make.buffer.rsrc")
def _make_resource(x: Execution, op: ir.Operation, base: Pointer, stride: Array, records: Array, _: Array) -> Pointer:
    if stride.any():
        raise _refused(op, "buffer resources with a stride")
    return Pointer(ResourceSpace(base, records.astype(np.int64) & 0xFFFFFFFF), np.zeros(1, np.int64))


def _resource_at(op: ir.Operation, resource: Any, offset: Array, shared: Array) -> Pointer:
    if not isinstance(resource, Pointer):
        raise _refused(op, "a buffer resource given as its four words")
    return resource.moved((offset.astype(np.int64) & 0xFFFFFFFF) + (shared.astype(np.int64) & 0xFFFFFFFF))


@means("rocdl.raw.ptr.buffer.load", "llvm.amdgcn.raw.ptr.buffer.load")
def _buffer_load(x: Execution, op: ir.Operation, resource: Any, offset: Array, shared: Array, _: Array) -> Array:
    return load(x, _resource_at(op, resource, offset, shared), op.result.type)


@means("llvm.amdgcn.s.buffer.load")
def _scalar_buffer_load(x: Execution, op: ir.Operation, resource: Any, offset: Array, _: Array) -> Array:
    return load(x, _resource_at(op, resource, offset, np.zeros(1, np.int64)), op.result.type)


@means("rocdl.raw.ptr.buffer.store", "llvm.amdgcn.raw.ptr.buffer.store")
def _buffer_store(
    x: Execution, op: ir.Operation, value: Array, resource: Any, offset: Array, shared: Array, _: Array
) -> None:
    store(x, value, op.operands[0].type, _resource_at(op, resource, offset, shared))


@means("rocdl.raw.ptr.buffer.load.lds")
def _buffer_load_lds(
    x: Execution, op: ir.Operation, resource: Any, target: Pointer, size: Array, offset: Array, shared: Array,
    static: Array, _: Array,
) -> None:  # fmt: skip
    place = _resource_at(op, resource, offset, shared)
    to_lds(x, place.moved(static.astype(np.int64)), target.moved(static.astype(np.int64)), int(size[0]))


@means("rocdl.global.load.lds")
def _global_load_lds(x: Execution, op: ir.Operation, source: Pointer, target: Pointer) -> None:
    offset = int(op.attributes["offset"].value)
    to_lds(x, source.moved(offset), target.moved(offset), int(op.attributes["size"].value))


def _buffer_atomic(operation: str) -> Callable[..., Any]:
    def meaning(
        x: Execution, op: ir.Operation, value: Array, resource: Any, offset: Array, shared: Array, _: Array
    ) -> Any:
        old = update(x, operation, value, op.operands[0].type, _resource_at(op, resource, offset, shared))
        return old if len(op.results) else None

    return meaning


for _name in ("add", "sub", "smax", "smin", "umax", "umin", "and", "or", "xor", "inc", "dec", "fadd", "fmax", "fmin"):
    _atomic = f"raw.ptr.buffer.atomic.{_name}"
    means(*_intrinsic(_atomic))(_buffer_atomic(_name))


@means(*_intrinsic("raw.ptr.buffer.atomic.cmpswap"))
def _buffer_cmpswap(
    x: Execution, op: ir.Operation, new: Array, expected: Array, resource: Any, offset: Array, shared: Array, _: Array
) -> Array:
    place = _resource_at(op, resource, offset, shared)
    return compare_and_swap(x, expected, new, op.operands[0].type, place)[0]


# --- LDS -------------------------------------------------------------------------------------------------------------


@means("rocdl.ds.read.tr16.b64", "rocdl.ds.read.tr8.b64", "rocdl.ds.read.tr4.b64")
def _read_transposed(x: Execution, op: ir.Operation, pointer: Pointer) -> Array:
    bits = int(op.name.split(".")[3].removeprefix("tr"))
    elements = ir.VectorType.get([64 // bits], ir.IntegerType.get_signless(bits))
    return recast(transposed(x, pointer, 16, elements), elements, op.result.type)


@means("rocdl.ds.load.tr16.b128")
def _load_transposed(x: Execution, op: ir.Operation, pointer: Pointer) -> Array:
    elements = ir.VectorType.get([8], ir.IntegerType.get_signless(16))
    return recast(transposed_of_eight(x, pointer, elements), elements, op.result.type)


def _bytes_in_name(name: str) -> int:
    """The bytes that an instruction moves, by the end of its name: 16 for `global.load.async.to.lds.b128`."""
    return int(name.rpartition(".b")[2]) // 8


@means("rocdl.global.load.async.to.lds.*", "rocdl.cluster.load.async.to.lds.*")
def _load_async(x: Execution, op: ir.Operation, source: Pointer, target: Pointer, *_: Any) -> None:
    """Copy each lane's bytes from global memory to its own place in LDS."""
    offset, size = int(op.attributes["offset"].value), _bytes_in_name(op.name)
    x.stores += 1
    place = source.moved(offset)
    data = place.space.load(place.address, size, x.mask, x.fault)
    target.space.store(target.address + offset, data, x.mask, x.fault)


@means(*(f"llvm.amdgcn.global.store.async.from.lds.b{bits}" for bits in (8, 32, 64, 128)))
def _store_async(x: Execution, op: ir.Operation, target: Pointer, source: Pointer, offset: Array, *_: Any) -> None:
    """Copy each lane's bytes from its own place in LDS to global memory."""
    size = _bytes_in_name(ir.StringAttr(op.attributes["intrin"]).value)
    moved_by = int(offset[0])
    x.stores += 1
    data = source.space.load(source.address + moved_by, size, x.mask, x.fault)
    target.space.store(target.address + moved_by, data, x.mask, x.fault)


def _refused(op: ir.Operation, what: str) -> NotInterpreted:
    return NotInterpreted(
        f"the interpreter does not know {what}", at=source_location(op.location), hint="run the kernel compiled"
    )
