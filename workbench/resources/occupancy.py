"""The resources view: registers, LDS and scratch of each kernel, and the occupancy that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flydsl.arch import Occupancy, Usage
from flydsl.arch.occupancy import RESOURCES
from flydsl.codegen import Kernel, Resources
from workbench.kit.html import code, escape, table, title
from workbench.resources.limits import curve, next_steps
from workbench.resources.occupancy_curves import occupancy_image


def _amounts(resources: Resources, lds_bytes: int) -> dict[str, str]:
    """The resources of a wave, labelled as in the tables. lds_bytes: of a workgroup, with what its launch adds."""
    return {
        "VGPR": str(resources.vgprs),
        "AGPR": str(resources.agprs),
        "SGPR": str(resources.sgprs),
        "LDS": f"{lds_bytes} B",
        "scratch": f"{resources.scratch_bytes} B",
        "spills": str(resources.vgpr_spills + resources.sgpr_spills),
        "code": f"{resources.code_bytes} B",
    }


def kernels_html(kernels: Sequence[Kernel]) -> str:
    """A table with one row per kernel, and what would let more waves run."""
    amounts = [_amounts(k.resources, k.usage.lds_bytes) for k in kernels]
    header = ("kernel", *amounts[0], "waves per SIMD", "limited by") if kernels else ("kernel",)
    rows = [
        [code(k.name), *taken.values(), _bar(now), escape(now.limiter or "nothing")]
        for k, taken, now in ((k, taken, k.usage.occupancy) for k, taken in zip(kernels, amounts, strict=True))
    ]
    notes = ((k.name, note) for k in kernels for note in (*launch_notes(k), next_wave(k)) if note)
    advice = "".join(title(f"{code(name)}: {escape(note)}") for name, note in notes)
    return f"<div>{table(header, rows, numbers=range(1, len(header) - 2))}{advice}</div>"


def kernel_html(kernel: Kernel) -> str:
    """A kernel's resources, what its occupancy is made of, and the curve of each resource."""
    head = title(f"<strong>{code(kernel.name)}</strong> for {escape(kernel.arch.name)}")
    return f"<div>{head}{kernels_html([kernel])}{usage_html(kernel.usage, with_advice=False)}</div>"


def usage_html(usage: Usage, *, with_advice: bool = True) -> str:
    """The occupancy of amounts: what each resource allows, where it would allow another number, and the curves.

    with_advice: False leaves out what would let more waves run.
    """
    now = usage.occupancy
    rows = [
        [
            escape(resource),
            str(usage.amount(resource)),
            _squares(now.limits[resource], now.max_waves_per_simd),
            "◀ limits" if now.limiter and now.limits[resource] == now.waves_per_simd else "",
            escape(_steps_text(usage, resource)),
        ]
        for resource in RESOURCES
    ]
    head = title(f"<strong>{escape(occupancy_text(now))}</strong>")
    header = ("resource", "amount", "allows waves per SIMD", "", "steps (amount up to: waves)")
    advice = title(escape(advice_text(usage))) if now.limiter and with_advice else ""
    return f"<div>{head}{table(header, rows, numbers=(1,))}{advice}{occupancy_image(usage)}</div>"


def _steps_text(usage: Usage, resource: str) -> str:
    """The number of waves that fit, up to each amount. Empty for a workgroup, whose waves do not fall with its size."""
    steps = curve(usage, resource)
    if resource == "workgroup" or len(steps) == 1:
        return ""
    ends = [start - 1 for start, _ in steps[1:]] + [usage.largest(resource)]
    return ", ".join(f"{end}: {waves}" for end, (_, waves) in zip(ends, steps, strict=True))


def kernel_text(kernel: Kernel) -> str:
    """One kernel as text."""
    lines = [f"{kernel.name} for {kernel.arch.name}", f"  {_text(_amounts(kernel.resources, kernel.usage.lds_bytes))}"]
    now = kernel.usage.occupancy
    lines += [f"  {line}" for line in (occupancy_text(now), *launch_notes(kernel), next_wave(kernel)) if line]
    return "\n".join(lines)


def resources_html(resources: Resources) -> str:
    """A table of the resources of a wave."""
    amounts = _amounts(resources, resources.lds_bytes)
    return f"<div>{table(tuple(amounts), [tuple(amounts.values())], numbers=range(len(amounts)))}</div>"


def resources_text(resources: Resources) -> str:
    """The resources as text."""
    return _text(_amounts(resources, resources.lds_bytes))


def _text(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())


def occupancy_html(occupancy: Occupancy) -> str:
    """The occupancy, and what each resource alone would allow; those that limit it are marked."""
    most = occupancy.max_waves_per_simd
    rows = [
        [
            escape(name),
            _squares(waves, most),
            "◀ limits" if occupancy.limiter and waves == occupancy.waves_per_simd else "",
        ]
        for name, waves in occupancy.limits.items()
    ]
    head = f"<strong>{escape(occupancy_text(occupancy))}</strong>"
    return f"<div>{title(head)}{table(('resource', 'allows waves per SIMD', ''), rows)}</div>"


def occupancy_text(occupancy: Occupancy) -> str:
    """The occupancy in a line."""
    waves, most = occupancy.waves_per_simd, occupancy.max_waves_per_simd
    limiters = [name for name, allowed in occupancy.limits.items() if allowed == waves]
    reason = f"limited by {' and '.join(limiters)}" if occupancy.limiter else "the maximum"
    return f"{waves} of {most} waves per SIMD, {reason}"


def launch_notes(kernel: Kernel) -> list[str]:
    """Notes on what the launch decides and LLVM cannot know."""
    llvm = f"{kernel.occupancy.waves_per_simd} waves per SIMD"
    smallest, largest = kernel.min_workgroup_size, kernel.info.max_workgroup_size
    notes = []
    if kernel.dynamic_lds_bytes is None:
        notes.append("Its launch adds LDS of a size that is known at run time only (smem=), which is not counted here.")
    elif kernel.dynamic_lds_bytes:
        added = f"Its launch adds {kernel.dynamic_lds_bytes} B of LDS (smem=), which is counted here"
        notes.append(f"{added}; LLVM, which cannot know, says {llvm}.")
    if kernel.workgroup_size != largest:
        now = replace(kernel.usage, workgroup_size=largest).occupancy.waves_per_simd
        sizes = f"Its workgroups may have {smallest} to {largest} threads"
        notes.append(f"{sizes}; this is for {kernel.workgroup_size}, as in LLVM; with {largest} it is {now}.")
    if kernel.waves_per_eu is not None:
        notes.append(f"It asks for at most {kernel.waves_per_eu} waves per SIMD itself (amdgpu-waves-per-eu).")
    return notes


def next_wave(kernel: Kernel) -> str:
    """The changes that allow one more wave, in words; empty at the maximum."""
    return advice_text(kernel.usage)


def advice_text(usage: Usage) -> str:
    """The changes that allow one more wave per SIMD, in words; empty at the maximum."""
    now, steps = usage.occupancy, next_steps(usage)
    if now.limiter is None:
        return ""
    if now.limits.get("waves_per_eu") == now.waves_per_simd:
        return ""
    if not steps:
        return "No other amount of what limits it would let more waves run."
    more = min(_with_steps(usage, resource, amount) for resource, amount in ((s.resource, s.amount) for s in steps))
    needs = " and ".join(_need(usage, step.resource, step.amount) for step in steps)
    return f"{more} waves per SIMD fit with {needs}"


def _with_steps(usage: Usage, resource: str, amount: int) -> int:
    """The waves allowed after one resource changes: the others may allow fewer, but more than now."""
    waves = usage.with_amount(resource, amount).occupancy.limits[resource]
    others = [
        allowed
        for name, allowed in usage.occupancy.limits.items()
        if name != resource and allowed > usage.occupancy.waves_per_simd
    ]
    return min([waves, *others])


def _need(usage: Usage, resource: str, amount: int) -> str:
    present = usage.amount(resource)
    return {
        "VGPR": f"at most {amount} vector registers; {present} are allocated",
        "SGPR": f"at most {amount} scalar registers; it takes {present}",
        "LDS": f"at most {amount} B of LDS; it takes {present} B",
        "workgroup": f"{amount} threads in a workgroup; it has {present}",
    }[resource]


def _bar(occupancy: Occupancy) -> str:
    return _squares(occupancy.waves_per_simd, occupancy.max_waves_per_simd)


def _squares(waves: int, most: int) -> str:
    return f"{'■' * waves}{'□' * (most - waves)} {waves} of {most}"
