"""Copies of gfx1250 between global memory and LDS that go on while the wave does, and loads for several workgroups.

Each lane has an address in both memories; the instruction's offset is added to both (LLVM, the intrinsics
`global.load.async.to.lds` and `global.store.async.from.lds`). `s_wait_asynccnt` waits for them. Here they have happened
when the next instruction begins; `checking` reports accesses that come before the wait.

The `cluster_` forms are for workgroups that ask for the same data at once, as M0 says, so that memory is read once.
Each gets it for itself, as by the `global_` form, which they are outside of a cluster. (AMD Instinct CDNA5 Instruction
Set Architecture, 10.7.)
"""

from __future__ import annotations

from functools import partial
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.flat import signed_address
from flydsl.simulator.isa.lds import is_somewhere
from flydsl.simulator.isa.table import define

_SIZES = {"b8": 1, "b32": 4, "b64": 8, "b128": 16}


def _lds_address(b: Builder, address: Value, modifiers: Any) -> Value:
    return b.add(address, b.const("i32", modifiers.integer("offset")))


def _to_lds(b: Builder, lds: Value, vector: Value, scalar: Value | None, modifiers: Any, size: int) -> None:
    source, target = signed_address(b, vector, scalar, modifiers, size), _lds_address(b, lds, modifiers)
    where = is_somewhere(b, lds, target)
    if size == 1:
        b.store_small("lds", target, b.load_small("global", source, 1, where), 1, where)
    else:
        b.store("lds", target, b.load("global", source, size // 4, where), where)


def _from_lds(b: Builder, vector: Value, lds: Value, scalar: Value | None, modifiers: Any, size: int) -> None:
    source, target = _lds_address(b, lds, modifiers), signed_address(b, vector, scalar, modifiers, size)
    if size == 1:
        b.store_small("global", target, b.load_small("lds", source, 1), 1)
    else:
        b.store("global", target, b.load("lds", source, size // 4))


def _to_registers(b: Builder, vector: Value, scalar: Value | None, modifiers: Any, size: int) -> Any:
    return b.load("global", signed_address(b, vector, scalar, modifiers, size), size // 4)


def _define() -> None:
    for name, size in _SIZES.items():
        for space in ("global", "cluster"):
            load = partial(_to_lds, size=size)
            define(f"{space}_load_async_to_lds_{name}", "= i32 any any modifiers", load, of="cdna5")
        store = partial(_from_lds, size=size)
        define(f"global_store_async_from_lds_{name}", "= any i32 any modifiers", store, of="cdna5")
        if size > 1:
            load = partial(_to_registers, size=size)
            define(f"cluster_load_{name}", f"i32x{size // 4} = any any modifiers", load, of="cdna5")


_define()
