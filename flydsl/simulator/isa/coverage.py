"""The table in COVERAGE.md: which instructions are simulated, from the table of semantics.

The prose before it is COVERAGE.template.md. `python -m flydsl.simulator.isa.coverage` writes the file anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from flydsl.arch import ARCHS, GFX942, GFX1250, Arch
from flydsl.simulator.isa.spellings import entries_on, name_on
from flydsl.simulator.isa.waits_and_hints import effect_of

PAGE = Path(__file__).parents[1] / "COVERAGE.md"
TEMPLATE = PAGE.with_name("COVERAGE.template.md")
_NO_EFFECT = "Without effect here (waits, caches, hints)"

_FAMILIES = (
    (
        "Control",
        r"s_(branch|cbranch|\w*barrier|call|endpgm|[sg]et_?pc|swap_?pc|sleep|monitor|trap|mem\w*time|[sg]etreg|set_gpr"
        r"|set_vgpr|sendmsg_rtn|get_shader)",
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


def page() -> str:
    """The text of the whole page."""
    alike: dict[tuple[str, ...], list[Arch]] = {}
    for arch in ARCHS:
        alike.setdefault(arch.instruction_sets, []).append(arch)
    names = {" and ".join(arch.name for arch in archs): _mnemonics(archs[0]) for archs in alike.values()}
    counts = ", ".join(f"{len(names[arch])} mnemonics of {arch}" for arch in names)
    parts = [
        TEMPLATE.read_text().format(counts=counts, newest=GFX1250.name),
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
    families = [title for title in (*(title for title, _ in _FAMILIES), _NO_EFFECT) if title in groups]
    rows = [f"| {title} ({len(groups[title])}) | {' '.join(groups[title])} |\n" for title in families]
    return "| family | mnemonics |\n| --- | --- |\n" + "".join(rows)


def family_of(name: str) -> str:
    """The heading under which a mnemonic is listed.

    >>> family_of("v_cmp_lt_f32"), family_of("ds_swizzle_b32")
    ('Comparisons', 'Between lanes')
    """
    if effect_of(name) != "state":
        return _NO_EFFECT
    return next(title for title, pattern in _FAMILIES if re.match(pattern, name))


if __name__ == "__main__":
    PAGE.write_text(page())
