"""The counters of memory operations under way, for each family of GPUs: which kinds of operations each counts.

A wave does not wait for its loads and stores. An operation increments its counters when it is issued and decrements
them when it has completed; a wait stops the wave until a counter is at most n. Operations of one `Stream` complete in
the order in which they were issued, and operations of different streams in any order, even where one counter counts
both. So an operation has certainly completed when a wait for n is over and n younger ones of its own stream had been
issued before the wait; one that completes out of order only when the wait was for 0.

Sources: the ISA documents of CDNA 3 ("Data dependency resolution", "Flat memory counting"), RDNA 3, RDNA 4 and CDNA 5
("Instruction dependency counters"), and LLVM's SIInsertWaitcnts.cpp and AMDGPUBaseInfo.cpp (the counters' sizes). The
kinds are those of `flydsl.simulator.isa.operations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from flydsl.arch.base import Arch
from flydsl.arch.gfx90a import GFX90A
from flydsl.arch.gfx942 import GFX942
from flydsl.arch.gfx950 import GFX950
from flydsl.arch.gfx1201 import GFX1200, GFX1201
from flydsl.arch.gfx1250 import GFX1250
from flydsl.arch.rdna3 import RDNA3


@dataclass(frozen=True)
class Stream:
    """Operations that one counter counts. in_order: whether they complete in the order in which they were issued.

    name: unique among the streams of a counter.
    """

    counter: str
    name: str
    in_order: bool = True


@dataclass(frozen=True)
class WaitCounters:
    """The counters of a family.

    sizes: counter -> how many operations may be under way; the next one is issued when one of them has completed.
    streams: kind of operation -> the streams that count it; it has completed when it has completed in all of them.
    besides: kind -> a stream that counts it as well, but need not be waited for.
    fields: counter -> its bits in the constant of s_waitcnt, in parts: (first bit, bits, by how much they are shifted).
    loads_write_in_order: whether two loads of a stream write a register in the order in which they were issued.
    """

    sizes: Mapping[str, int]
    streams: Mapping[str, tuple[Stream, ...]]
    besides: Mapping[str, Stream] = field(default_factory=dict)
    fields: Mapping[str, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)
    loads_write_in_order: bool = True

    def decoded(self, constant: int) -> dict[str, int]:
        """The counters that `s_waitcnt` with this constant waits for, and the value down to which it waits.

        >>> CDNA.decoded(0x0F72), CDNA.decoded(0xC07F)
        ({'vmcnt': 2}, {'lgkmcnt': 0})
        """
        found = {
            counter: sum((constant >> first & (1 << bits) - 1) << shift for first, bits, shift in parts)
            for counter, parts in self.fields.items()
        }
        return {counter: most for counter, most in found.items() if most < self.sizes[counter]}

    def encoded(self, counts: Mapping[str, int]) -> int:
        """The constant with which `s_waitcnt` waits for these counters, and for no others.

        >>> hex(CDNA.encoded({"vmcnt": 18})), CDNA.decoded(CDNA.encoded({"lgkmcnt": 1}))
        ('0x4f72', {'lgkmcnt': 1})
        """
        most = {counter: min(counts.get(counter, size), size) for counter, size in self.sizes.items()}
        return sum(
            (most[counter] >> shift & (1 << bits) - 1) << first
            for counter, parts in self.fields.items()
            for first, bits, shift in parts
        )

    @cached_property
    def all_streams(self) -> tuple[Stream, ...]:
        """Every stream once."""
        return tuple(dict.fromkeys(stream for streams in self.streams.values() for stream in streams))


def _of_earlier(vector: Stream, stores: Stream, others: str, *, flat_in_order: bool) -> dict[str, tuple[Stream, ...]]:
    """The streams where one counter, `others`, counts LDS, scalar loads and messages."""
    lds = Stream(others, "LDS")
    flat_loads, flat_stores = (vector, lds), (stores, lds)
    if not flat_in_order:
        # Data returns from LDS or from memory, whichever is first, and is counted in that order.
        flat_loads = flat_stores = (Stream(vector.counter, "flat", False), Stream(others, "flat", False))
    return {
        "vector load": (vector,),
        "vector store": (stores,),
        "load to LDS": (vector,),
        "global load to LDS": (vector,),
        "write-back": (stores,),
        "flat load": flat_loads,
        "flat store": flat_stores,
        "LDS": (lds,),
        "scalar load": (Stream(others, "scalar", False),),
        "message": (Stream(others, "message", False),),
        "export": (Stream("expcnt", "export"),),
    }


_VECTOR = Stream("vmcnt", "vector")
CDNA = WaitCounters(
    {"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7},
    _of_earlier(_VECTOR, _VECTOR, "lgkmcnt", flat_in_order=False),
    besides={"global load to LDS": Stream("lgkmcnt", "LDS")},
    fields={"vmcnt": ((0, 4, 0), (14, 2, 4)), "expcnt": ((4, 3, 0),), "lgkmcnt": ((8, 4, 0),)},
)
RDNA3_COUNTERS = WaitCounters(
    {"vmcnt": 63, "vscnt": 63, "lgkmcnt": 63, "expcnt": 7},
    _of_earlier(_VECTOR, Stream("vscnt", "vector"), "lgkmcnt", flat_in_order=True),
    fields={"expcnt": ((0, 3, 0),), "lgkmcnt": ((4, 6, 0),), "vmcnt": ((10, 6, 0),)},
)

_LOADS, _STORES, _LDS = Stream("loadcnt", "vector"), Stream("storecnt", "vector"), Stream("dscnt", "LDS")
_SCALAR = Stream("kmcnt", "scalar", False)
_RDNA4_STREAMS = {
    "vector load": (_LOADS,),
    "vector store": (_STORES,),
    "invalidation": (_LOADS,),
    "write-back": (_STORES,),
    "flat load": (_LOADS, _LDS),
    "flat store": (_STORES, _LDS),
    "LDS": (_LDS,),
    "scalar load": (_SCALAR,),
    "message": (Stream("kmcnt", "message", False),),
    "first at barrier": (Stream("kmcnt", "barrier", False),),
    "sample": (Stream("samplecnt", "sample"),),
    "ray": (Stream("bvhcnt", "ray"),),
    "export": (Stream("expcnt", "export"),),
}
RDNA4 = WaitCounters(
    {"loadcnt": 63, "storecnt": 63, "dscnt": 63, "kmcnt": 31, "samplecnt": 63, "bvhcnt": 7, "expcnt": 7},
    _RDNA4_STREAMS,
    loads_write_in_order=False,
)
CDNA5 = WaitCounters(
    {"loadcnt": 63, "storecnt": 63, "dscnt": 63, "kmcnt": 31, "asynccnt": 63, "tensorcnt": 3},
    {
        **{kind: streams for kind, streams in _RDNA4_STREAMS.items() if kind not in ("sample", "ray", "export")},
        # Loads and stores complete in any order among each other (AMD Instinct CDNA5 ISA, 10.8, 10.11.1).
        "asynchronous load": (Stream("asynccnt", "load"),),
        "asynchronous store": (Stream("asynccnt", "store"),),
        "asynchronous arrival": (Stream("asynccnt", "arrival", False),),
        "tile": (Stream("tensorcnt", "tile"),),
    },
    loads_write_in_order=False,
)

_OF: Mapping[str, WaitCounters] = {
    **{arch.name: CDNA for arch in (GFX90A, GFX942, GFX950)},
    **{arch.name: RDNA3_COUNTERS for arch in RDNA3},
    **{arch.name: RDNA4 for arch in (GFX1200, GFX1201)},
    GFX1250.name: CDNA5,
}


def wait_counters(arch: Arch) -> WaitCounters:
    """The counters of an architecture.

    >>> wait_counters(GFX942).streams["flat load"][0].in_order, wait_counters(GFX1201).streams["flat load"][0].in_order
    (False, True)
    """
    return _OF[arch.name]
