"""Programs of other compilers: the views of their code objects and launches, and the report of `%%flykernel`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape as escape_all

from flydsl.binary import BinaryKernel, BinaryLaunch, BinaryModule
from workbench.kit.html import ON_PAPER, code, details, escape, faint, listing, message, title
from workbench.kit.values import value_text
from workbench.machine_code.listing import isa_html, isa_text
from workbench.resources.occupancy import kernel_html, kernel_text, kernels_html
from workbench.run.view import run_html, run_text
from workbench.thread_trace.view import launch_traces_html, launch_traces_text

_MAX_TEXT_LINES = 400


def module_html(module: BinaryModule) -> str:
    """Resources of every kernel, the ISA, and what it was compiled from."""
    occupancy = "".join(details(f"Occupancy of {code(k.name)}", kernel_html(k)) for k in module.code.kernels)
    resources = kernels_html(module.code.kernels)
    return f"<div>{_head(module)}{resources}{_isa_html(module)}{occupancy}{_texts_html(module)}</div>"


def module_text(module: BinaryModule) -> str:
    """Resources of every kernel and the ISA, as text."""
    return "\n\n".join([repr(module), *map(kernel_text, module.code.kernels), _isa_text(module)])


def kernel_view_html(kernel: BinaryKernel) -> str:
    """A kernel's resources and occupancy."""
    return kernel_html(kernel.resources)


def kernel_view_text(kernel: BinaryKernel) -> str:
    """A kernel's parameters and resources, as text."""
    return f"{kernel!r}\n{kernel_text(kernel.resources)}"


class BinaryReport:
    """The report of `%%flykernel` about a module, or about the launches of one of its kernels.

    launches: of one kernel, the first one counted; none to show the module. sections: of `report.SECTIONS`; there is
    no pipeline and there are no layouts.
    """

    def __init__(self, module: BinaryModule, launches: Sequence[BinaryLaunch], sections: Sequence[str]) -> None:
        self.module = module
        self.launch = launches[0] if launches else None
        self._calls = len(launches)
        self._sections = sections

    @property
    def heading(self) -> str:
        """The module, or the call as the user would write it."""
        if self.launch is None:
            return f"{self.module.origin} for {self.module.code.arch.name}"
        calls = "1 call" if self._calls == 1 else f"{self._calls} calls, the first one shown"
        return f"{call_text(self.launch)} for {self.module.code.arch.name} ({calls}), {self.module.origin}"

    def _repr_html_(self) -> str:
        return f"<div>{title(f'<strong>{escape(self.heading)}</strong>')}{''.join(self._parts())}{ON_PAPER}</div>"

    def _parts(self) -> Iterator[str]:
        kernels = self.module.code.kernels
        if self.launch is not None:
            kernels = (self.launch.kernel.resources,)
        if "isa" in self._sections:
            yield kernels_html(kernels) + _isa_html(self.module)
        if "occupancy" in self._sections:
            for kernel in kernels:
                yield details(f"Occupancy of {code(kernel.name)}", kernel_html(kernel))
        if "run" in self._sections and self.launch is not None:
            yield details("Run", run_html(self.launch), is_open=True)
        if "trace" in self._sections and self.launch is not None:
            yield details("Time", launch_traces_html(self.launch), is_open=True)
        yield _texts_html(self.module)

    def __repr__(self) -> str:
        kernels = self.module.code.kernels if self.launch is None else (self.launch.kernel.resources,)
        parts = [self.heading, *map(kernel_text, kernels)]
        if "isa" in self._sections:
            parts.append(_isa_text(self.module))
        if "run" in self._sections and self.launch is not None:
            parts.append(run_text(self.launch))
        if "trace" in self._sections and self.launch is not None:
            parts.append(launch_traces_text(self.launch))
        return "\n\n".join(parts)


def binary_reports(launches: Sequence[BinaryLaunch], sections: Sequence[str]) -> list[BinaryReport]:
    """One report per kernel, in the order of the first launches."""
    groups: dict[tuple[int, str], list[BinaryLaunch]] = {}
    for launch in launches:
        groups.setdefault((id(launch.kernel.module), launch.kernel.symbol), []).append(launch)
    return [BinaryReport(group[0].kernel.module, group, sections) for group in groups.values()]


def call_text(launch: BinaryLaunch) -> str:
    """A launch as the user would write it, with tensors as types."""
    named = zip(launch.kernel.parameters, launch.arguments, strict=True)
    arguments = ", ".join(
        f"{parameter.name}={value_text(value)}" if parameter.name else value_text(value) for parameter, value in named
    )
    return f"{launch.kernel.name}({arguments}), grid={_short(launch.grid)}, block={_short(launch.block)}"


def binary_heading(subject: BinaryModule | BinaryLaunch) -> str:
    """The name of a module or a launch on a page."""
    if isinstance(subject, BinaryModule):
        return f"{subject.origin} for {subject.code.arch.name}"
    return call_text(subject)


def binary_chapter(subject: BinaryModule | BinaryLaunch, max_lines: int) -> dict[str, str]:
    """The sections of a page about a module or a launch, by title. max_lines: of each listing of machine code."""
    module = subject if isinstance(subject, BinaryModule) else subject.kernel.module
    found = {"Run": run_html(subject, max_lines=max_lines)} if isinstance(subject, BinaryLaunch) else {}
    found["Kernels"] = kernels_html(module.code.kernels)
    found["Machine code"] = _isa_html(module)
    found["Occupancy"] = "".join(map(kernel_html, module.code.kernels))
    return found | {name: listing(_clipped(text)) for name, text in module.texts.items()}


def _short(size: tuple[int, int, int]) -> str:
    """Three sizes without trailing ones."""
    shown = size[: 3 if size[2] > 1 else 2 if size[1] > 1 else 1]
    return str(shown[0]) if len(shown) == 1 else str(shown)


def _head(module: BinaryModule) -> str:
    return title(f"<strong>{escape(module.origin)}</strong> for {escape(module.code.arch.name)}")


def _isa_html(module: BinaryModule) -> str:
    """The machine code, or why there is none to show."""
    return message(str(module.unlisted)) if module.unlisted is not None else isa_html(module.code)


def _isa_text(module: BinaryModule) -> str:
    return str(module.unlisted) if module.unlisted is not None else isa_text(module.code)


def _texts_html(module: BinaryModule) -> str:
    return "".join(details(escape(name), listing(_clipped(text))) for name, text in module.texts.items())


def _clipped(text: str) -> str:
    """The first lines of a text."""
    lines = text.splitlines()
    more = f"\n{faint(f'{len(lines) - _MAX_TEXT_LINES} more lines')}" if len(lines) > _MAX_TEXT_LINES else ""
    return escape_all("\n".join(lines[:_MAX_TEXT_LINES])) + more
