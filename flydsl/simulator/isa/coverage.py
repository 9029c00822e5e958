"""The table in COVERAGE.md: which instructions are simulated, from the table of semantics.

`python -m flydsl.simulator.isa.coverage` writes the file anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from flydsl.arch import ARCHS, GFX942, GFX1250, Arch
from flydsl.simulator.isa.spellings import entries_on, name_on

PAGE = Path(__file__).parents[1] / "COVERAGE.md"

_FAMILIES = (
    (
        "Control",
        r"s_(branch|cbranch|\w*barrier|call|endpgm|[sg]et_?pc|swap_?pc|sleep|monitor|trap|mem\w*time|[sg]etreg|set_gpr"
        r"|set_vgpr|sendmsg_rtn|get_shader)",
    ),
    (
        "Without effect here (waits, caches, hints)",
        r"s_(wait|nop|set|inst|icache|dcache|inc|dec|ttrace|wakeup|send|clause|delay|prefetch|buffer_prefetch|code)",
    ),
    (
        "Without effect here (waits, caches, hints)",
        r"v_nop|v_clrexcp|v_pipeflush|ds_nop|(buffer|global)_(wb|inv)|\w+_prefetch_b8",
    ),
    ("Scalar memory", r"s_(buffer_)?load"),
    ("Scalar arithmetic", r"s_"),
    ("Pairs of operations (VOPD)", r"v_dual_"),
    ("Matrix", r"v_(mfma|smfmac|wmma|swmmac)"),
    ("Packed, mixed precision, dot products", r"v_(pk_|fma_mix|dot)"),
    ("Comparisons", r"v_cmpx?_"),
    ("Conversions", r"v_cvt|v_pack"),
    ("Division and transcendental functions", r"v_(div|rcp|rsq|sqrt|exp|log|sin|cos|tanh|trig)_"),
    ("Between lanes", r"v_(read|write|mbcnt|swap|permlane)|ds_(b?permute|swizzle)"),
    ("Vector arithmetic, floats", r"v_\w*_f(16|32|64)$"),
    ("Vector arithmetic, integers and bits", r"v_"),
    ("Tiles", r"tensor_"),
    ("LDS", r"ds_"),
    ("Buffers", r"buffer_"),
    ("Global memory", r"(global|cluster)_"),
    ("Flat addresses", r"flat_"),
    ("Scratch", r"scratch_"),
)

_INTRODUCTION = """\
# What the simulator executes

Written by `python -m flydsl.simulator.isa.coverage` from the table of semantics in `isa/`; a test holds it current.

{counts}, in the encodings
that LLVM prints for them: e32 and e64, literals and inline constants, scalar, vector and accumulation registers,
`null`, `src_scc`, `src_vccz` and `src_execz`, SDWA, DPP (DPP8, too), halves of registers (v0.h), pairs of operations
(VOPD), op_sel, neg, abs, clamp, omod, and the packed forms. An instruction, or a form of one, that is not here raises
`UnknownInstruction` when a wave reaches it.

Results do not depend on the host: not on its CPU, its load, the number of threads, or the float environment of its
threads. Every operation is either one of integers, one that IEEE 754 defines to the bit, or a fixed sequence of those
(`isa/elementary`); which NaN results is said below; native code is made for fixed sets of CPU features (`native/host`);
float environments are set while something runs (`float_environment`); workgroups that use atomics in global memory run
on one thread and take turns after fixed numbers of instructions. Only a kernel with a race between workgroups, without
atomics, may give other results with another number of threads. A race within a workgroup gives the same result every
time, but another one in lock-step, where waves go on together, than natively, where each runs on to where it waits: at
a barrier, or for memory (s_waitcnt), but in a program with atomics of global memory, whose results depend on the order
of waves, at barriers alone.

Numerics:

- Rounding (four modes) and denormals (kept or flushed, on input and on output) follow the MODE register, which starts
  as the kernel descriptor says.
- Conversions and fused multiply-adds are rounded once. 8-bit floats are those of the GPU: FNUZ on CDNA 3, those of the
  OCP on CDNA 4. With MODE.FP16_OVFL, conversions saturate, but OCP infinities stay; other f16 arithmetic in that mode,
  and MFMA, is refused. Where a format has no NaN (6 and 4 bits), it becomes the largest number.
- RDNA 4 has no IEEE mode, and its clamp always takes NaN to 0. A result of 16 bits leaves the other half of a vector
  register as it is, and clears that of a scalar one. Its dot products with a result of 16 bits are those with a result
  of f32, rounded at the end.
- WMMA and SWMMAC accumulate as MFMA does: products are exact and summed in f64, then C is added, and the sum is rounded
  once to the type of D, to nearest even and with denormals kept in any mode. Hardware's order is not documented.
- Where the document does not say which NaN results, it is the first operand that is one, made quiet, or else
  the positive quiet NaN without payload; of MFMA and WMMA always that one.
- Conversions to integers saturate and take NaN to 0, shifts look at the lowest bits of the amount, as documented.
- Dot products of f16 (v_dot2) flush denormals and round each sum to nearest, whatever the mode, as documented.
- Stochastic rounding (v_cvt_sr; of f16 and bf16, too, where it is not documented) adds the random bits below the last
  place that is kept, carries, and cuts off; the document's formula would round a second time and lose the carry.
  Of several elements with one random number (v_cvt_sr_pk, v_cvt_scalef32_sr_pk) each but the first takes the number
  that follows, as v_prng_b32 has it: so does AMD's functional model; no document says it.
- A float constant of a 16-bit integer operand is the low half of its f32, as LLVM describes the hardware.
- Reciprocals, roots, exponentials, logarithms, sines and cosines are within the documented 1 ulp of the exact value
  (f64: 2**29 ulp), and usually nearer than hardware. Those of f32, except sine and cosine, flush denormals, as
  documented.
- v_div_scale, v_div_fmas and v_div_fixup make LLVM's divisions come out correctly rounded.
- MFMA: products and their sum are exact in f64 or nearly so, C is added, and the sum is rounded once; f64 is one fma
  per k, ascending. The document says neither the order nor the precision of hardware, so the last bit may differ.
  xf32 cuts its operands off to 10 bits of mantissa. A CBSZ or ABID beyond the blocks is refused. Of the scaled products
  of CDNA 4, a lane holds two runs of 16 elements of 8 bits, or 32 elements of 6 or 4 bits that are neighbours. The
  layouts of its sparse products with twice the K are those that the tests of AMD's emulator pin after an MI350; those
  of integers (v_smfmac_i32_16x16x128_i8, 32x32x64), which they do not have, are refused. Two elements of a sparse A
  with the same index both count.
- {newest}: bf16 arithmetic is computed in f64 and rounded once, to nearest even and with denormals, in any mode; that
  of v_fma_mix in f32, in the mode of f32, and then rounded to bf16. The scales of v_cvt_scalef32 count by their
  exponents alone, as on CDNA 4. v_permlane_up, _down and _xor leave a lane as it is whose source is outside of its
  group. Of an atomic addition of floats the operand's NaN comes before that of memory, and where infinities cancel the
  NaN is negative.
- The multiply-adds of f32 on CDNA 2 (v_mad, v_mac) flush denormals, whatever the mode.

Waves of 32 lanes have masks in one scalar register: VCC_LO, EXEC_LO. Waits of RDNA for its counters let the other waves
go first, as s_waitcnt does; s_delay_alu, s_clause and s_wait_alu have no effect. Of barriers there is that of the
workgroup (-1): a wave passes s_barrier_wait when all waves have come to s_barrier_signal; and on {newest} that of the
cluster (-3), at which each workgroup arrives once. One that ends without arriving leaves the others waiting, which is
an error; the hardware lets them pass. The workgroups of a cluster run together, and find their places in TTMP6 and
IB_STS2.

Tiles and asynchronous copies of {newest} have happened when the next instruction begins; accesses before the wait are
races, which `checking` reports. A multicast load (workgroup_mask, cluster_load) brings data to the workgroup alone that
makes it, as the hardware does: each of those that the mask names has to make it. A descriptor is an error if its tile
has rows of no elements (the hardware then moves nothing), ends outside of LDS, has bits set that restore a wave,
repeats more than 256 times, or gathers rows that do not ascend and lie partly beyond the tensor. Barriers in
LDS count in 29 bits (`isa/lds_barrier`).

Memory: to reads and atomics no allocation or view begins or ends inside a dword, nor does LDS end there; the dword's
other bytes are the host's, and stores do not reach them. The offsets of a buffer access from a vector register and from
the instruction wrap at 32 bits, its scalar offset does not. HW_ID and XCC_ID are 0 in every wave. An access past a
workgroup's LDS is an error, though the hardware reads 0 there and writes nothing (as does
FLYDSL_SIMULATOR_LDS=hardware): LLVM leaves such an access undefined, and a program that makes one is mostly wrong
without a word. But on {newest} a write at 0x7fffffff stores nothing, as Triton has it for lanes that are masked off.

Not simulated: swizzled buffers but those of {newest}, formatted buffer accesses, GDS, scalar stores and atomics,
relative scalar registers (s_movrels), hardware registers other than MODE, HW_ID, XCC_ID and IB_STS2, SDWA of packed
and of 64-bit operands, clamp on packed multiplications, shifts, minima and maxima of integers, and on sums of
absolute differences of four bytes, signs on integer operands (v_pk_mov_b32 among them), op_sel of v_alignbit and
v_alignbyte, typed buffers (tbuffer), tfe, scalar loads from scratch, branches to numbers instead of labels, those of
debuggers and forks (s_cbranch_cdbg, s_cbranch_g_fork), returns from traps (s_rfe), s_setvskip, s_setkill, export and
image instructions; on CDNA 2 `buffer_store_lds_dword`; on RDNA 4 transposing loads in waves of 64 lanes, barriers
with numbers, dynamic VGPRs (s_alloc_vgpr), interpolation, ray tracing; on {newest} scale_sel beyond 3, s_add_pc_i64
that is no branch to a label, and what RDNA 4 has not either: barriers with numbers; signs of WMMA's elements of 8
bits, float constants as C of those with a result of bf16, and of SWMMAC that of bf16 with an accumulator of f32
(bf16f32), whose result has half as many registers.

"""


def page() -> str:
    """The text of the whole page."""
    alike: dict[tuple[str, ...], list[Arch]] = {}
    for arch in ARCHS:
        if arch.instruction_sets:
            alike.setdefault(arch.instruction_sets, []).append(arch)
    names = {" and ".join(arch.name for arch in archs): _mnemonics(archs[0]) for archs in alike.values()}
    counts = ", ".join(f"{len(names[arch])} mnemonics of {arch}" for arch in names)
    parts = [
        _INTRODUCTION.format(counts=counts, newest=GFX1250.name),
        f"Of {GFX942.name}:\n\n",
        _table(names[GFX942.name]),
    ]
    for which, own in names.items():
        if which != GFX942.name:
            parts += [f"\n{which} has, besides:\n\n", _table(own - names[GFX942.name])]
            parts += [f"\nIt has not: {' '.join(sorted(names[GFX942.name] - own))}\n"]
    return "".join(parts)


def _mnemonics(arch: Arch) -> set[str]:
    entries = entries_on(arch.instruction_sets)
    names = (name_on(s.mnemonic, arch.instruction_sets) or "" for s in entries.values())
    return {part for name in names for part in name.split("::")}  # of a pair, each operation


def _table(names: Collection[str]) -> str:
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(family_of(name), []).append(name)
    families = [title for title in dict.fromkeys(title for title, _ in _FAMILIES) if title in groups]
    rows = [f"| {title} ({len(groups[title])}) | {' '.join(groups[title])} |\n" for title in families]
    return "| family | mnemonics |\n| --- | --- |\n" + "".join(rows)


def family_of(name: str) -> str:
    """The heading under which a mnemonic is listed.

    >>> family_of("v_cmp_lt_f32"), family_of("ds_swizzle_b32")
    ('Comparisons', 'Between lanes')
    """
    return next(title for title, pattern in _FAMILIES if re.match(pattern, name))


if __name__ == "__main__":
    PAGE.write_text(page())
