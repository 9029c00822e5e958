"""The loads of gfx12 that transpose a tile on its way to the lanes: ds_load_tr* and global_load_tr*.

Each lane loads a piece of a column of the tile (a run of its rows, which lie one after the other in memory), and gets a
piece of a row: elements of one row and consecutive columns, as WMMA takes them. All lanes of the wave are needed.

| bits | a lane loads | groups of lanes exchange |
| --- | --- | --- |
| 16 | 8 elements | 8 lanes |
| 8, global | 8 elements | 8 lanes |
| 8, LDS | 8 elements | 4 lanes, twice: lanes 0 to 3 with 8 to 11, 4 to 7 with 12 to 15 |
| 6 | 16 elements | 16 lanes: those with bit 2 clear, and those with it set |
| 4 | 16 elements | 16 lanes: those with bit 3 clear, and those with it set |

Element i of a destination lane comes from its i-th source lane, where it is the element that the lane's place in its
group (or half of it) numbers. Sources: AMD's test of these instructions against "documented WMMA coordinates" and its
functional model (rocm-systems, emulation/rocjitsu). For 8 bits in LDS that test has lanes exchange as for global
memory. Here they do what a public program observed on hardware and what Triton's lowering takes for granted, and AMD's
model too, since TensileLite's kernels, which are right on the hardware, came out wrong on it otherwise (issue 10522 and
pull request 10521 of rocm-systems).

RDNA 4 has global_load_tr_b128, for 16 bits, and global_load_tr_b64, for 8 bits, whose lanes exchange as those of loads
from LDS do above: so two projects measured them on gfx1201 (tessera's notes on the GPU's fragments; a contract of the
instruction for llama.cpp). Waves of 64 lanes get half as much each, which is not documented.
"""

from __future__ import annotations

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.fields import field_of, packed_fields

TRANSPOSED = {"tr16_b128": 4, "tr8_b64": 2, "tr6_b96": 3, "tr4_b64": 2}
"""The suffixes of the instructions, and the registers of each."""
TRANSPOSED_ON_RDNA4 = {"tr_b128": "global_tr16_b128", "tr_b64": "ds_tr8_b64"}
"""Suffixes on RDNA 4, and what `transposed` calls an instruction that does the same."""
_LANES = 32


def _source(name: str, lane: int, element: int) -> int:
    """The lane that loads an element of a destination lane."""
    half, place = lane & 16, lane & 15
    if name.endswith("tr6_b96"):  # the upper half of the lanes gets what those with bit 2 set have loaded
        return 8 * (element // 4) + element % 4 + half // 4
    if name.endswith("tr4_b64"):
        return 16 * (element // 8) + half // 2 + element % 8
    if name == "ds_tr8_b64":
        return half + place // 8 * 4 + element % 4 + 8 * (element // 4)
    return (lane & ~7) + element


def transposed(b: Builder, held: tuple[Value, ...], name: str) -> tuple[Value, ...]:
    """The part that each lane gets of what all have loaded. name: of the instruction, such as "ds_tr16_b128"."""
    bits = int(name.rpartition("tr")[2].partition("_")[0])
    count = 32 * len(held) // bits
    elements = [field_of(b, held, i, bits) for i in range(count)]
    codes = []
    for i in range(count):
        source = [_source(name, lane, i) for lane in range(_LANES)]
        moved = [b.permute_constant(b.per_lane(element), source) for element in elements]
        codes.append(of_the_lane(b, moved))
    return packed_fields(b, codes, bits)


def of_the_lane(b: Builder, values: list[Value]) -> Value:
    """The value whose number is that of the lane, modulo their count, a power of two."""
    lane, distance = b.per_lane(b.lane_id()), 1
    while len(values) > 1:
        is_set = b.icmp("ne", b.and_(lane, b.const("i32", distance)), b.const("i32", 0))
        values = [b.select(is_set, odd, even) for even, odd in zip(values[::2], values[1::2], strict=True)]
        distance *= 2
    return values[0]
