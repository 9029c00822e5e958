"""The resources view: registers, LDS and scratch of each kernel, and the occupancy that follows."""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.arch import Occupancy, max_vgprs
from flydsl.codegen import Kernel, Resources
from workbench.html import code, escape, table, title


def _amounts(resources: Resources) -> dict[str, str]:
    """What a wave takes, in the words that the tables use."""
    return {
        "VGPR": str(resources.vgprs),
        "AGPR": str(resources.agprs),
        "SGPR": str(resources.sgprs),
        "LDS": f"{resources.lds_bytes} B",
        "scratch": f"{resources.scratch_bytes} B",
        "spills": str(resources.vgpr_spills + resources.sgpr_spills),
        "code": f"{resources.code_bytes} B",
    }


def kernels_html(kernels: Sequence[Kernel]) -> str:
    """A table with one row per kernel, and what would let more waves run."""
    header = ("kernel", *_amounts(kernels[0].resources), "waves per SIMD", "limited by") if kernels else ("kernel",)
    rows = [
        [code(k.name), *_amounts(k.resources).values(), _bar(k.occupancy), escape(k.occupancy.limiter or "nothing")]
        for k in kernels
    ]
    advice = "".join(title(f"{code(k.name)}: {escape(text)}") for k in kernels if (text := next_wave(k)))
    return f"<div>{table(header, rows, numbers=range(1, len(header) - 2))}{advice}</div>"


def kernel_text(kernel: Kernel) -> str:
    """One kernel as text."""
    lines = [f"{kernel.name} for {kernel.arch.name}", f"  {resources_text(kernel.resources)}"]
    lines += [f"  {line}" for line in (occupancy_text(kernel.occupancy), next_wave(kernel)) if line]
    return "\n".join(lines)


def resources_html(resources: Resources) -> str:
    """What a wave takes."""
    amounts = _amounts(resources)
    return f"<div>{table(tuple(amounts), [tuple(amounts.values())], numbers=range(len(amounts)))}</div>"


def resources_text(resources: Resources) -> str:
    """The same as text."""
    return ", ".join(f"{name} {amount}" for name, amount in _amounts(resources).items())


def occupancy_html(occupancy: Occupancy) -> str:
    """The occupancy, and what each resource alone would allow; those that limit it are marked."""
    most = occupancy.max_waves_per_simd
    rows = [
        [escape(name), _squares(waves, most), "◀ limits" if name == occupancy.limiter else ""]
        for name, waves in occupancy.limits.items()
    ]
    head = f"<strong>{escape(occupancy_text(occupancy))}</strong>"
    return f"<div>{title(head)}{table(('resource', 'allows waves per SIMD', ''), rows)}</div>"


def occupancy_text(occupancy: Occupancy) -> str:
    """The occupancy in a line."""
    waves, most = occupancy.waves_per_simd, occupancy.max_waves_per_simd
    reason = f"limited by {occupancy.limiter}" if occupancy.limiter else "the maximum"
    return f"{waves} of {most} waves per SIMD, {reason}"


def next_wave(kernel: Kernel) -> str:
    """With how many vector registers one more wave would fit, where they are what limits it; else empty."""
    occupancy = kernel.occupancy
    if occupancy.limiter != "VGPR":
        return ""
    waves = occupancy.waves_per_simd + 1
    most = max_vgprs(kernel.arch, waves, kernel.info.wave_size)
    return f"{waves} waves per SIMD fit with at most {most} vector registers; {occupancy.vgprs_allocated} are allocated"


def _bar(occupancy: Occupancy) -> str:
    return _squares(occupancy.waves_per_simd, occupancy.max_waves_per_simd)


def _squares(waves: int, most: int) -> str:
    return f"{'■' * waves}{'□' * (most - waves)} {waves} of {most}"
