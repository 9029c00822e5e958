"""Copies of gfx1250 between global memory and LDS that do not wait, transposing loads and prefetches.

A wave's asynchronous copies are counted: `rocdl.s_wait_asynccnt(n)` waits until at most n are under way. A barrier
alone does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import GFX12, GFX1250
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import (
    bitcast,
    bits_of,
    call,
    call_intrinsic,
    i32_attribute,
    immediate,
    intrinsic_result,
    ir_type,
    operand,
    require_target,
    result_type_first,
)
from flydsl.expr.rocdl.intrinsic import llvm_pointer as pointer_to
from flydsl.expr.rocdl.lds_address import lds_pointer

_GENERIC, _GLOBAL = 0, 1
_OFFSET_MAX = 0x7F_FFFF
_POLICY_MAX = 0x7FFF_FFFF
_SIZES = {1: "b8", 4: "b32", 8: "b64", 16: "b128"}


# --- copies ----------------------------------------------------------------------------------------------------------


def _attributes(name: str, offset: Any, policy: str, aux: Any) -> dict[str, ir.Attribute]:
    return {
        "offset": i32_attribute(immediate(f"the offset of {name}", offset, -_OFFSET_MAX - 1, _OFFSET_MAX)),
        policy: i32_attribute(immediate(f"{policy} of {name}", aux, 0, _POLICY_MAX)),
    }


def _async_load(suffix: str) -> Callable[..., None]:
    name = f"global_load_async_to_lds_{suffix}"

    def load(global_ptr: Any, lds_ptr: Any, offset: Any = 0, aux: Any = 0) -> None:
        require_target(name, GFX1250)
        addresses = [pointer_to(f"the source of {name}", global_ptr, _GLOBAL), lds_pointer(name, lds_ptr)]
        call(f"global.load.async.to.lds.{suffix}", addresses, attributes=_attributes(name, offset, "aux", aux))

    load.__name__ = load.__qualname__ = name
    load.__doc__ = (
        f"Start copying {suffix[1:]} bits per lane from global memory to LDS, each lane to its own `lds_ptr`. "
        f"offset: bytes added to both; aux: cache policy; constants. {GFX1250[0]}."
    )
    return load


def _cluster_load(suffix: str) -> Callable[..., None]:
    name = f"cluster_load_async_to_lds_{suffix}"

    def load(global_ptr: Any, lds_ptr: Any, offset: Any = 0, cpol: Any = 0, mask: Any = 0) -> None:
        require_target(name, GFX1250)
        operands = [
            pointer_to(f"the source of {name}", global_ptr, _GLOBAL),
            lds_pointer(name, lds_ptr),
            operand(f"the mask of {name}", mask, Int32),
        ]
        call(f"cluster.load.async.to.lds.{suffix}", operands, attributes=_attributes(name, offset, "cpol", cpol))

    load.__name__ = load.__qualname__ = name
    load.__doc__ = (
        f"Start copying {suffix[1:]} bits per lane from global memory to LDS, together with other workgroups of the "
        "cluster that ask for the same: memory is read once, and each gets it into its own LDS. mask: one bit for each "
        f"of them and this one, the same in all lanes. offset, cpol: constants. {GFX1250[0]}."
    )
    return load


def _async_store(suffix: str) -> Callable[..., None]:
    name = f"global_store_async_from_lds_{suffix}"

    def store(global_ptr: Any, lds_ptr: Any, offset: Any = 0, aux: Any = 0) -> None:
        require_target(name, GFX1250)
        constants = [
            Int32(immediate(f"the offset of {name}", offset, -_OFFSET_MAX - 1, _OFFSET_MAX)),
            Int32(immediate(f"aux of {name}", aux, 0, _POLICY_MAX)),
        ]
        addresses = [pointer_to(f"the target of {name}", global_ptr, _GLOBAL), lds_pointer(name, lds_ptr)]
        # MLIR has no operation for it.
        call_intrinsic(f"llvm.amdgcn.{name.rpartition('_')[0].replace('_', '.')}.{suffix}",
                       [*addresses, *(constant.ir_value() for constant in constants)])  # fmt: skip

    store.__name__ = store.__qualname__ = name
    store.__doc__ = (
        f"Start copying {suffix[1:]} bits per lane from LDS to global memory, each lane from its own `lds_ptr`. "
        f"offset: bytes added to both; aux: cache policy; constants. {GFX1250[0]}."
    )
    return store


global_load_async_to_lds_b8, global_load_async_to_lds_b32 = _async_load("b8"), _async_load("b32")
global_load_async_to_lds_b64, global_load_async_to_lds_b128 = _async_load("b64"), _async_load("b128")
global_store_async_from_lds_b8, global_store_async_from_lds_b32 = _async_store("b8"), _async_store("b32")
global_store_async_from_lds_b64, global_store_async_from_lds_b128 = _async_store("b64"), _async_store("b128")
cluster_load_async_to_lds_b8, cluster_load_async_to_lds_b32 = _cluster_load("b8"), _cluster_load("b32")
cluster_load_async_to_lds_b64, cluster_load_async_to_lds_b128 = _cluster_load("b64"), _cluster_load("b128")


def cluster_load_async_to_lds(
    global_ptr: Any, lds_ptr: Any, size_bytes: Any, offset: Any = 0, cpol: Any = 0, mask: Any = 0
) -> None:
    """`cluster_load_async_to_lds_b...` of 1, 4, 8 or 16 bytes."""
    name = "cluster_load_async_to_lds"
    size = immediate(f"the size of {name}", size_bytes, 1, 16)
    if size not in _SIZES:
        raise ArgumentError(
            f"{name} of {size} bytes: 1, 4, 8 or 16",
            at=user_location(),
            hint="copy in several calls, or use another size",
        )
    globals()[f"{name}_{_SIZES[size]}"](global_ptr, lds_ptr, offset, cpol, mask)


# --- transposing loads -----------------------------------------------------------------------------------------------


def _transposing(name: str, operation: str, element_bits: int, bits: int, archs: tuple[str, ...]) -> Callable[..., Any]:
    from_lds = name.startswith("ds_")

    @result_type_first
    def load(res: Any, ptr: Any) -> Any:
        require_target(name, archs)
        words = ir.VectorType.get([bits // 32], Int32.ir_type)
        kind = words if res is None else ir_type(name, res)
        if bits_of(kind) != bits:
            raise ArgumentError(
                f"{name}: the result has {bits} bits, {kind} has {bits_of(kind)}",
                at=user_location(),
                hint="leave the result type away, or name one of that width",
            )
        moved = ir.VectorType.get([bits // 16], ir.IntegerType.get_signless(16)) if element_bits == 16 else words
        address = lds_pointer(name, ptr) if from_lds else pointer_to(f"the address of {name}", ptr, _GLOBAL)
        return intrinsic_result(bitcast(call(operation, [address], moved).ir_value(), kind))

    load.__name__ = load.__qualname__ = name
    load.__doc__ = (
        f"Read {bits} bits per lane of a matrix of {element_bits}-bit elements from {'LDS' if from_lds else 'memory'}, "
        f"with rows and columns exchanged. res: a type of {bits} bits. {', '.join(archs)}."
    )
    return load


ds_load_tr16_b128 = _transposing("ds_load_tr16_b128", "ds.load.tr16.b128", 16, 128, GFX1250)
ds_load_tr8_b64 = _transposing("ds_load_tr8_b64", "ds.load.tr8.b64", 8, 64, GFX1250)
ds_load_tr6_b96 = _transposing("ds_load_tr6_b96", "ds.load.tr6.b96", 6, 96, GFX1250)
ds_load_tr4_b64 = _transposing("ds_load_tr4_b64", "ds.load.tr4.b64", 4, 64, GFX1250)
global_load_tr_b128 = _transposing("global_load_tr_b128", "global.load.tr.b128", 16, 128, GFX12)
global_load_tr_b64 = _transposing("global_load_tr_b64", "global.load.tr.b64", 8, 64, GFX12)
global_load_tr6_b96 = _transposing("global_load_tr6_b96", "global.load.tr6.b96", 6, 96, GFX1250)
global_load_tr4_b64 = _transposing("global_load_tr4_b64", "global.load.tr4.b64", 4, 64, GFX1250)


def lds_transpose_load(result_type: Any, lds_memref: Any, elem_offset: Any, elem_bytes: int) -> Any:
    """`ds_load_tr16_b128` of 16-bit elements, or `ds_load_tr8_b64` of 8-bit ones, at an element of LDS.

    lds_memref: a tensor, pointer, SmemPtr or memref in LDS. elem_offset: elements of `elem_bytes` bytes, 1 or 2.
    """
    name = "lds_transpose_load"
    load = {2: ds_load_tr16_b128, 1: ds_load_tr8_b64}.get(elem_bytes)
    if load is None:
        raise ArgumentError(
            f"{name} of elements of {elem_bytes!r} bytes: 1 or 2",
            at=user_location(),
            hint="such as elem_bytes=2 for 16-bit elements",
        )
    return load(result_type, lds_pointer(name, lds_memref, elem_offset * elem_bytes))


# --- prefetches ------------------------------------------------------------------------------------------------------


def _prefetch(name: str, space: int) -> Callable[..., None]:
    def prefetch(ptr: Any, scope: Any = 0) -> None:
        require_target(name, GFX1250)
        address = pointer_to(f"the address of {name}", ptr, space)
        cache = Int32(immediate(f"the scope of {name}", scope, 0, _POLICY_MAX)).ir_value()
        # MLIR has an operation for it, and removes it as one without effect.
        call_intrinsic(f"llvm.amdgcn.{name.replace('_', '.')}", [address, cache])

    prefetch.__name__ = prefetch.__qualname__ = name
    prefetch.__doc__ = (
        f"Bring the memory at an address into a cache. scope: 0 this CU's, 8 the shader engine's. {GFX1250[0]}."
    )
    return prefetch


global_prefetch, flat_prefetch = _prefetch("global_prefetch", _GLOBAL), _prefetch("flat_prefetch", _GENERIC)

__all__ = [
    "cluster_load_async_to_lds", "cluster_load_async_to_lds_b8", "cluster_load_async_to_lds_b32",
    "cluster_load_async_to_lds_b64", "cluster_load_async_to_lds_b128", "ds_load_tr4_b64", "ds_load_tr6_b96",
    "ds_load_tr8_b64", "ds_load_tr16_b128", "flat_prefetch", "global_load_async_to_lds_b8",
    "global_load_async_to_lds_b32", "global_load_async_to_lds_b64", "global_load_async_to_lds_b128",
    "global_load_tr4_b64", "global_load_tr6_b96", "global_load_tr_b64", "global_load_tr_b128", "global_prefetch",
    "global_store_async_from_lds_b8", "global_store_async_from_lds_b32", "global_store_async_from_lds_b64",
    "global_store_async_from_lds_b128",
    "lds_transpose_load",
]  # fmt: skip
