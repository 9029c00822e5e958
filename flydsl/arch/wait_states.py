"""Wait states that the hardware does not count itself: a compiler, or an author, puts s_nop or other work there.

A wait state is an instruction that is issued, and n + 1 of them are `s_nop n`. On CDNA 5 and RDNA only instructions of
the vector ALU count, such as v_nop.

Sources: CDNA 2, CDNA 3 and CDNA 4 ISA, "Manually inserted wait states (NOPs)" and "Dependency resolution: required
independent instructions"; LLVM, GCNHazardRecognizer.cpp, with which the tests compare the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from flydsl.arch.base import Arch
from flydsl.arch.gfx90a import GFX90A
from flydsl.arch.gfx942 import GFX942
from flydsl.arch.gfx950 import GFX950
from flydsl.arch.gfx1201 import GFX1200, GFX1201
from flydsl.arch.gfx1250 import GFX1250
from flydsl.arch.instruction_costs import mfma_cycles
from flydsl.arch.rdna3 import RDNA3

_CYCLES_PER_PASS = 4


@dataclass(frozen=True)
class WaitStates:
    """The wait states between instructions that depend on each other; 0 where the hardware waits.

    Of a scalar register that the vector ALU writes, by who uses it: memory_sgpr, lane_select, vector_sgpr, and of VCC
    division_vcc. Of EXEC that it writes: dpp_exec, matrix_exec, lane_exec. Of a vector register that it writes: dpp,
    matrix_operand, read_lane, permlane_swap; and if a transcendental (transcendental), a part of the register (part)
    or a dot product (dot) was written. stored: until the data of a store of more than 64 bits may be overwritten.
    m0: until what reads M0 implicitly. mode: between accesses to a hardware register. fma64: after a product of f64.
    """

    memory_sgpr: int = 0
    lane_select: int = 0
    vector_sgpr: int = 0
    division_vcc: int = 0
    dpp_exec: int = 0
    matrix_exec: int = 0
    lane_exec: int = 0
    dpp: int = 0
    matrix_operand: int = 0
    read_lane: int = 0
    permlane_swap: int = 0
    transcendental: int = 0
    part: int = 0
    dot: int = 0
    stored: int = 0
    m0: int = 0
    mode: int = 0
    fma64: int = 0


_CDNA2 = WaitStates(
    memory_sgpr=5, lane_select=4, division_vcc=4, dpp_exec=5, matrix_exec=4, dpp=2, matrix_operand=2, dot=3, stored=1,
    m0=1, mode=2, fma64=2,
)  # fmt: skip
_CDNA3 = replace(_CDNA2, vector_sgpr=2, lane_exec=4, read_lane=1, transcendental=1, part=1, stored=2)
_OF: Mapping[str, WaitStates] = {
    GFX90A.name: _CDNA2,
    GFX942.name: _CDNA3,
    GFX950.name: replace(_CDNA3, permlane_swap=2),
}


def wait_states(arch: Arch) -> WaitStates:
    """The figures of an architecture; all 0 for one that needs none, or whose figures are not here.

    >>> wait_states(GFX942).memory_sgpr, wait_states(GFX1201).memory_sgpr
    (5, 0)
    """
    return _OF.get(arch.name, WaitStates())


@dataclass(frozen=True)
class Product:
    """The wait states after a matrix instruction of CDNA, by who uses its registers.

    sums: reading D as C of another product, not of the very same registers; of a f32 one (sums_f32), of f64
    (sums_f64). same: of the same registers. factors: reading D as A or B. vector: by the vector ALU, v_accvgpr_read
    included; memory: by loads, stores and LDS. overwritten: writing D, added: writing C.
    """

    sums: int
    sums_f32: int
    sums_f64: int
    same: int
    factors: int
    vector: int
    memory: int
    overwritten: int
    added: int

    @property
    def most(self) -> int:
        """The most of them."""
        return max(self.sums, self.sums_f32, self.sums_f64, self.same, self.factors, self.vector, self.memory,
                   self.overwritten, self.added)  # fmt: skip


def product(arch: Arch, mnemonic: str) -> Product | None:
    """The wait states after a matrix instruction; None where they are not known, or not needed.

    mnemonic: as `instruction_costs.mfma_cycles` takes it.

    >>> product(GFX942, "v_mfma_f32_16x16x16_f16").vector, product(GFX950, "v_mfma_f32_16x16x16_f16").vector
    (7, 8)
    """
    cycles = mfma_cycles(arch, mnemonic) if arch.name in _OF else None
    if cycles is None:
        return None
    passes = cycles // _CYCLES_PER_PASS
    if "_f64" in mnemonic:
        return _of_f64(arch, passes)
    if arch == GFX90A:
        return Product(passes, passes, passes + 1, 0, passes + 3, passes + 3, passes + 3, passes + 3, passes - 1)
    same = 2 if passes == 2 else 0
    if mnemonic.split("_")[-1] == "f32":  # of f32 factors, which has no state of its own to hand over to others
        return Product(0, passes, passes, same, passes + 2, passes + 2, passes + 2, passes + 2, 0)
    later = int(arch == GFX950 and passes != 2)
    sums = passes + (2 if arch == GFX950 else 1)
    ends = passes + 3 + later
    return Product(sums, passes + 1 + later, passes + 1 + later, same, ends, ends, ends, ends, passes - 1)


def _of_f64(arch: Arch, passes: int) -> Product:
    if passes == 4:
        return Product(0, 0 if arch == GFX90A else 4, 4, 4, 6, 6, 9, 6, 0)
    sums, factors = (17, 19) if arch == GFX950 else (9, 11)
    return Product(0, 0 if arch == GFX90A else sums, sums, 0, factors, factors, 18, 11, 0)


@dataclass(frozen=True)
class VectorSlots:
    """Instructions of the vector ALU that must lie in between, on RDNA and CDNA 5, after matrix products and
    transcendentals: before a product that has D as a factor, before other vector instructions that use D or overwrite
    a factor. transcendental: before another vector instruction that depends on one, or overwrites its operand."""

    factors: int
    vector: int


_ONE_SLOT = frozenset(arch.name for arch in (*RDNA3, GFX1200, GFX1201))
SCALAR_READS_ARE_KEPT = frozenset(arch.name for arch in (GFX1200, GFX1201))
"""GPUs whose vector ALU keeps the scalar registers that it reads: see `simulator.waits.scalar_reads`."""
TRANSCENDENTAL_SLOTS: Mapping[str, int] = {GFX1250.name: 1}


def vector_slots(arch: Arch, mnemonic: str, formats: str) -> VectorSlots | None:
    """The slots after a v_wmma or v_swmmac. formats: the text of the modifiers that name those of A and B.

    >>> vector_slots(GFX1250, "v_wmma_f32_16x16x32_f16", ""), vector_slots(GFX1201, "v_wmma_f32_16x16x16_f16", "")
    (VectorSlots(factors=5, vector=4), VectorSlots(factors=1, vector=0))
    """
    if arch.name in _ONE_SLOT:
        return VectorSlots(1, 0)
    if arch.name != GFX1250.name:
        return None
    if mnemonic.endswith("x4_f32"):
        return VectorSlots(1, 0)
    is_sparse = mnemonic.startswith("v_swmmac")
    has_eight_bits = formats.count("FP8") + formats.count("BF8") + 2 - formats.count("matrix_") > 0
    is_slow = "_iu" in mnemonic or (mnemonic.endswith("f8f6f4") and has_eight_bits)
    slots = (4 if is_slow else 2) if is_sparse else (8 if is_slow else 4)
    return VectorSlots(slots + 1, slots)
