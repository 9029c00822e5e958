"""The error for a result that is not its reference's, and the lines that explain it: who wrote it, and made of what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from flydsl.compiler.debugging.calls import Call
from flydsl.compiler.debugging.influences import Probe, text_of
from flydsl.compiler.debugging.interpreted import interpreting
from flydsl.compiler.debugging.suspicions import overflow_in, race_in
from flydsl.compiler.debugging.writers import Writer, WriterHistory
from flydsl.errors import DeviceError, SourceLocation
from flydsl.simulator.checks import limited, no_checks
from flydsl.simulator.observers import observing

_MOST_CALLS, _MOST_LAUNCHES = 3000, 4
_MOST_INSTRUCTIONS = 1_000_000
_ELSEWHERE = "  who wrote it is not known: that takes CPU tensors, whose launches are simulated"
_TO_CPU = "pass the tensors with .cpu()"


@dataclass(frozen=True)
class WrongTensor:
    """A tensor that a launch has written wrong. one: its; right: the reference's; mask: of the elements that differ."""

    name: str
    one: Any
    right: Any
    mask: Any

    @cached_property
    def element(self) -> tuple[int, ...]:
        """The coordinate of the first wrong element."""
        return tuple(int(i) for i in self.mask.nonzero()[0])

    @property
    def found(self) -> Any:
        """The launch's number there."""
        return self.one[self.element]

    @property
    def expected(self) -> Any:
        """The reference's number there."""
        return self.right[self.element]

    @property
    def place(self) -> int:
        """The element's place in memory, in elements from the tensor's first."""
        return sum(i * stride for i, stride in zip(self.element, self.one.stride(), strict=True))

    def __str__(self) -> str:
        where = f"{self.name}[{', '.join(map(str, self.element))}]" if self.element else self.name
        return f"{where} is {_shown(self.found)}, and the reference's {_shown(self.expected)}; {self._count()}"

    def _count(self) -> str:
        count, total = int(self.mask.sum()), self.mask.numel()
        if count == 1:
            return f"the other {total - 1} elements agree" if total > 1 else "it is the only element"
        if count == total:
            return f"all {total} elements differ"
        where = text_of(self.name, self.mask)
        return f"{count} of {total} elements differ" + ("" if "more of" in where or "…" in where else f": {where}")

    def elsewhere(self) -> list[str]:
        """A line for a right value that is in one other place."""
        if not self.element or not bool(self.expected):
            return []
        places = (self.one == self.expected).nonzero().tolist()
        return [f"  the reference's number is at {self.name}{places[0]}"] if len(places) == 1 else []


class WrongResult(DeviceError):
    """A launch whose result is not that of its reference.

    tensor, element: where, by the launcher's argument and the element's coordinate. found, expected: the numbers there.
    writer: who wrote it last; None if nothing did. depends, should_depend: a mask for each tensor, of the elements that
    the launch made it of, and the reference; empty where that was not looked for.
    """

    def __init__(
        self,
        wrong: WrongTensor,
        lines: Sequence[str],
        *,
        at: SourceLocation | None,
        hint: str,
        writer: Writer | None = None,
        depends: Mapping[str, Any] | None = None,
        should_depend: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__("\n".join([str(wrong), *lines]), at=at, hint=hint)
        self.tensor, self.element = wrong.name, wrong.element
        self.found, self.expected = wrong.found.item(), wrong.expected.item()
        self.writer, self.depends, self.should_depend = writer, depends or {}, should_depend or {}


def explain(wrong: WrongTensor, launch: Call, reference: Call) -> WrongResult:
    """The error for a wrong tensor. launch, reference: on the tensors as they were before; copies of them are used."""
    if not launch.is_simulated:
        return WrongResult(wrong, [_ELSEWHERE], at=None, hint=_TO_CPU)
    history = _history(wrong, launch)
    hint = _hint(wrong, launch, history.writer)
    if history.writer is None:
        return WrongResult(wrong, _not_written(wrong, history), at=_place_of_launch(launch), hint=hint)
    lines = [f"  written last by {history.writer}"]
    depends: dict[str, Any] = {}
    should: dict[str, Any] = {}
    if _are_finite(wrong.found, wrong.expected):
        depends, complete = _influences(wrong, launch, is_launch=True)
        should, as_well = _influences(wrong, reference, is_launch=False)
        lines += _of_what(depends, should, history.lines_of_reads(), wrong.elsewhere)
        if not (complete and as_well):
            lines.append("  there are too many elements to try each: some of these do not count")
    return WrongResult(
        wrong, lines, at=history.writer.at, hint=hint, writer=history.writer, depends=depends, should_depend=should
    )


def _not_written(wrong: WrongTensor, history: WriterHistory) -> list[str]:
    """Lines about the launches, none of which has written the element."""
    launches = {(each.kernel, each.grid, each.block): None for each in history.launches}
    lines = ["  no thread has written it"]
    for kernel, grid, block in list(launches)[:_MOST_LAUNCHES]:
        lines.append(f"  {kernel}: grid {grid} x block {block} = {prod((*grid, *block))} threads")
    if len(launches) > _MOST_LAUNCHES:
        lines.append(f"  and {len(launches) - _MOST_LAUNCHES} other launches")
    lines[-1] += f"; {wrong.name} has {wrong.one.numel()} elements"
    return lines


def _place_of_launch(launch: Call) -> SourceLocation | None:
    """The line of a launcher that launches; None if there are several, or if it is no `flyc.jit` function."""
    lower = getattr(launch.function, "lower", None)
    if lower is None:
        return None
    copy = launch.copy()
    places = {kernel.at for kernel in lower(*copy.args, **copy.kwargs).traced.kernels}
    return places.pop() if len(places) == 1 else None


def _hint(wrong: WrongTensor, launch: Call, writer: Writer | None) -> str:
    if race := race_in(launch):
        return race
    if writer is None:
        return "do the grid and the block cover the tensor, and does a condition leave it out?"
    if not wrong.found.dtype.is_floating_point and (overflow := overflow_in(launch)):
        return overflow
    if not _are_finite(wrong.found) and _are_finite(wrong.expected):
        return f'flydsl.simulator.checking("nan") finds the instruction that made it {_shown(wrong.found)}'
    return "with flydsl.interpreting(), a breakpoint in this line shows what it was made of"


def _are_finite(*values: Any) -> bool:
    """True unless one is a NaN or an infinity, which stays one whatever else is changed."""
    return all(not value.dtype.is_floating_point or bool(value.isfinite()) for value in values)


def _shown(value: Any) -> str:
    number = value.item()
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _of_what(
    depends: Mapping[str, Any],
    should: Mapping[str, Any],
    lines: Mapping[str, Sequence[str]],
    elsewhere: Callable[[], list[str]],
) -> list[str]:
    """Lines about the tensors of which the launch uses other elements than the reference."""
    found, same = [], []
    for name, own in depends.items():
        if bool((own == should[name]).all()):
            same += [text_of(name, own)] if bool(own.any()) else []
            continue
        read = f" ({name} is read in {' and '.join(lines[name])})" if lines.get(name) else ""
        found.append(f"  it is made of {text_of(name, own)}{read}; the reference, of {text_of(name, should[name])}")
    if not found:
        return [
            f"  both are made of {', '.join(same)}"
            if same
            else "  neither depends on an element of a tensor: both are made of constants and the launcher's numbers"
        ]
    return [*elsewhere(), *found]


def _influences(wrong: WrongTensor, call: Call, *, is_launch: bool) -> tuple[dict[str, Any], bool]:
    """A mask for each tensor of what the wrong element depends on, and whether the calls sufficed to find it."""
    copy = call.copy()

    def launch() -> None:
        with no_checks(), limited(instructions=_MOST_INSTRUCTIONS), interpreting(False):
            copy()

    probe = Probe(launch if is_launch else copy, list(copy.tensors()), wrong.name, wrong.element, _MOST_CALLS)
    return probe.influences(), probe.is_complete


def _history(wrong: WrongTensor, launch: Call) -> WriterHistory:
    """Who writes the wrong element in a launch."""
    history = WriterHistory(wrong.name, wrong.place, wrong.one.element_size())
    with no_checks(), interpreting(False), observing(history):
        launch.copy()()
    return history
