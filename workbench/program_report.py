"""The page of `workbench run --report report.html`: every kernel of a program, with its launches and time."""

from __future__ import annotations

from pathlib import Path

from flydsl import gpu
from flydsl.compiler.caching.saved import place_to_write
from flydsl.gpu.launches import KernelTime, Summary
from flydsl.simulator.estimates import LEGEND
from workbench.kit.html import code, escape, faint, table
from workbench.kit.static_page import static_page

_BAR = "display:inline-block;height:0.7em;min-width:1px;background:rgba(0,114,178,0.8);width:{em:.4g}em"
_BAR_EM = 8.0


def write_program_report(path: Path, program: str) -> None:
    """Write one self-contained page about what the posed GPU has run. program: its name, for the title.

    Raises ArgumentError if no GPU is posed, or for a path that cannot be written.
    """
    found = gpu.summary()
    title = f"{program} on {found.product.name}"
    place_to_write(path).write_text(static_page(title, _body(title, found)), encoding="utf-8")


def _body(title: str, found: Summary) -> str:
    count = len({time.kernel for time in found.kernels})
    head = f"{found.head}, {count} kernel{'s' * (count != 1)}"
    operators = (
        f"{found.operators} of torch's own operators took {found.operators_us:.4g} us by memory bandwidth alone, which "
        "is too little for products."
        if found.operators
        else ""
    )
    notes = [f"{text[0].upper()}{text[1:]}." for text in found.untimed] or ["Every launch is timed."]
    paragraphs = [escape(text) for text in (head, *notes, operators) if text]
    return "".join((
        f"<h1>{escape(title)}</h1>", *(f"<p>{text}</p>" for text in paragraphs), _kernels(found),
        f"<p>{faint(escape(LEGEND))}</p>",
    ))  # fmt: skip


def _kernels(found: Summary) -> str:
    if not found.kernels:
        return "<p>No launch is timed.</p>"
    heads = ["kernel", "grid", "block", "launches", "time of each", "", "time of all", "share", "limited by"]
    heads += ["measured"] if found.is_measured else []
    return table(heads, [_row(time, found.time_us) for time in found.kernels], numbers=(3, 4, 6))


def _row(time: KernelTime, total_us: float) -> list[str]:
    share = time.total_us / total_us if total_us else 0.0
    sizes = ("x".join(map(str, size)) for size in (time.grid, time.block))
    bar = f'<span style="{_BAR.format(em=share * _BAR_EM)}"></span> {share:.0%}'
    each = f'<span title="{escape(time.estimate.meaning)}">{escape(time.estimate.error)}</span>'
    return [
        code(time.kernel), *map(escape, sizes), str(time.launches), f"{time.estimate.time_us:.4g} us", each,
        f"{time.total_us:.4g} us", bar, escape(time.bound), *filter(None, [escape(time.compared)]),
    ]  # fmt: skip
