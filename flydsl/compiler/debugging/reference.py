"""A launch against a reference: the first element that is wrong, who wrote it, and what each of them made it of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from flydsl.compiler.arguments.given_tensors import copied, differing, names_of, tensors_of
from flydsl.compiler.debugging.influences import Probe, text_of
from flydsl.compiler.debugging.interpreted import interpreting
from flydsl.compiler.debugging.suspicions import overflow_in, race_in
from flydsl.errors import ArgumentError, DeviceError, SourceLocation
from flydsl.places import user_location
from flydsl.simulator.checks import limited, no_checks
from flydsl.simulator.observers import ObservedAccess, ObservedLaunch, Observer, observing

_MOST_CALLS, _MOST_LINES = 3000, 4
_MOST_INSTRUCTIONS = 1_000_000
_EPSILONS = 8
_ELSEWHERE = "  who wrote it is not known: that takes CPU tensors, whose launches are simulated"
_TO_CPU = "pass the tensors with .cpu()"


@dataclass(frozen=True)
class Writer:
    """Who wrote an element last. thread: in the workgroup; at, isa_line: of the instruction."""

    workgroup: tuple[int, int, int]
    thread: tuple[int, int, int]
    instruction: str
    isa_line: int
    at: SourceLocation | None

    def __str__(self) -> str:
        name = self.instruction.split()[0]
        return f"thread {self.thread} of workgroup {self.workgroup}, {name} (ISA line {self.isa_line})"


class _History(Observer):
    """Who writes an element of a tensor, and where tensors are read.

    tensor: its name. place: of the element in memory, in elements from the tensor's first.
    """

    def __init__(self, tensor: str, place: int, element_bytes: int) -> None:
        self._tensor, self._place, self._bytes = tensor, place, element_bytes
        self._reads: dict[str, dict[SourceLocation, None]] = {}
        self.launches: list[ObservedLaunch] = []
        self.writer: Writer | None = None

    def launch(self, launch: ObservedLaunch) -> None:
        self.launches.append(launch)

    def access(self, access: ObservedAccess) -> None:
        if access.buffer is None or access.elements is None:
            return
        at = access.instruction.location
        if not access.is_write:
            if at is not None:
                self._reads.setdefault(access.buffer, {})[at] = None
            return
        if access.buffer != self._tensor:
            return
        reach = max(access.size_bytes // self._bytes, 1)
        hits = np.flatnonzero((access.elements <= self._place) & (self._place < access.elements + reach))
        if hits.size:
            self._note(access, int(hits[-1]), at)

    def _note(self, access: ObservedAccess, number: int, at: SourceLocation | None) -> None:
        lane = int(access.waves[number]) * access.instruction.wave_size + int(access.lanes[number])
        x, y, _ = self.launches[-1].block
        i, j, k = (int(place) for place in access.workgroups[number])
        listed = access.instruction.listed
        self.writer = Writer((i, j, k), (lane % x, lane // x % y, lane // (x * y)), listed.text, listed.line, at)

    def lines_of_reads(self) -> dict[str, list[str]]:
        """The lines in which each tensor is read."""
        here = self.writer.at.file if self.writer is not None and self.writer.at is not None else ""
        return {name: _lines(sorted(set(places), key=str), here) for name, places in self._reads.items()}


def _lines(places: Sequence[SourceLocation], here: str) -> list[str]:
    """Lines of the file of the writer, and others with their files."""
    lines = list(dict.fromkeys(f"line {at.line}" if at.file == here else f"{at.file}:{at.line}" for at in places))
    return [*lines[:_MOST_LINES], *(["others"] if len(lines) > _MOST_LINES else [])]


class WrongResult(DeviceError):
    """A launch whose result is not that of its reference.

    tensor, element: where, by the launcher's argument and the element's coordinate. found, expected: the numbers there.
    writer: who wrote it last; None if nothing did. depends, should_depend: a mask for each tensor, of the elements that
    the launch made it of, and the reference; empty where that was not looked for.
    """

    def __init__(
        self,
        message: str,
        *,
        at: SourceLocation | None,
        hint: str,
        tensor: str,
        element: tuple[int, ...],
        found: Any,
        expected: Any,
        writer: Writer | None,
        depends: Mapping[str, Any],
        should_depend: Mapping[str, Any],
    ) -> None:
        super().__init__(message, at=at, hint=hint)
        self.tensor, self.element, self.found, self.expected = tensor, element, found, expected
        self.writer, self.depends, self.should_depend = writer, depends, should_depend


def compare_reference(
    launch: Callable[..., Any],
    reference: Callable[..., Any],
    *args: Any,
    rtol: float | None = None,
    atol: float | None = None,
    **kwargs: Any,
) -> None:
    """Launch on copies of the tensors, and call the reference on others. Raises WrongResult if they do not agree.

    reference: a function of the launcher's arguments that writes to the same tensors what the launch should, such as
    `lambda a, b, c: c.copy_(a @ b)`. Raises ArgumentError if it writes to none of them. args, kwargs: of the launcher;
    the tensors are on the CPU, and may be in lists, tuples and dicts. rtol, atol: how far floats may differ, as in
    `torch.isclose`. The default is 8 steps of the tensor's type, relative to its largest number.

    The error names the first element that is wrong, the line and the thread that wrote it last, and those elements of
    the tensors of which the launch made it and the reference did not, or the other way around. It finds these by
    changing them, in up to 3,000 launches each, so choose a small shape. Nothing is written to the tensors that are
    given.
    """
    for function, what in ((launch, "launcher"), (reference, "reference")):
        if not callable(function):
            raise ArgumentError(f"{function!r} is not a {what}", at=user_location(), hint="pass a function")
    names = names_of(launch, len(args), kwargs)
    own, other = copied((args, kwargs)), copied((args, kwargs))
    with interpreting(False):
        launch(*own[0], **own[1])
    _write_reference(reference, other, names, own)
    found = zip(tensors_of(names, own), tensors_of(names, other), strict=True)
    for (name, one), (_, right) in found:
        wrong = differing(right, one, *_allowed(right, rtol, atol))
        if bool(wrong.any()):
            raise _error(launch, reference, (args, kwargs), names, name, one, right, wrong)


def _write_reference(reference: Callable[..., Any], given: Any, names: Sequence[str], launched: Any) -> None:
    """Call the reference, and refuse one that has written to no tensor. launched: what the launch was given."""
    tensors = list(tensors_of(names, given))
    before = [(_version(tensor), tensor.clone()) for _, tensor in tensors]
    args, kwargs = given
    returned = reference(*args, **kwargs)
    for (_, tensor), (version, content) in zip(tensors, before, strict=True):
        if version is None or _version(tensor) != version or bool(differing(content, tensor, 0.0, 0.0).any()):
            return
    returns = "" if returned is None else f", and its {type(returned).__name__} is not looked at"
    after = zip(before, tensors_of(names, launched), strict=True)
    changed = [name for (_, content), (name, own) in after if bool(differing(content, own, 0.0, 0.0).any())]
    result = changed[0] if changed else "out"
    raise ArgumentError(
        f"the reference has written to none of {', '.join(name for name, _ in tensors) or 'its arguments'}{returns}",
        at=user_location(),
        hint=f"write to the tensor that the launch writes to, as in {result}.copy_(...) or {result}[:] = ...",
    )


def _version(tensor: Any) -> int | None:
    """Torch's count of the writes to a tensor, also of those that change nothing; None where it does not count them."""
    return None if tensor.is_inference() else tensor._version


def _allowed(right: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """The tolerances: where none are given, by what the type of the tensor can hold."""
    import torch

    if not right.dtype.is_floating_point:
        return 0.0, 0.0
    relative = _EPSILONS * torch.finfo(right.dtype).eps if rtol is None else rtol
    if atol is not None or not right.numel():
        return relative, atol or 0.0
    finite = right.double()[torch.isfinite(right.double())]
    return relative, relative * float(finite.abs().max()) if finite.numel() else 0.0


def _error(
    launch: Any, reference: Any, given: Any, names: Sequence[str], name: str, one: Any, right: Any, wrong: Any
) -> WrongResult:
    element = tuple(int(i) for i in wrong.nonzero()[0])
    where = f"{name}[{', '.join(map(str, element))}]" if element else name
    lines = [f"{where} is {_shown(one[element])}, and the reference's {_shown(right[element])}; {_count(name, wrong)}"]
    place = sum(i * stride for i, stride in zip(element, one.stride(), strict=True))
    history = _History(name, place, one.element_size())
    observed = _observed(launch, given, names, history)
    at, by = _who(history, launch, given, name, one) if observed else (None, [_ELSEWHERE])
    lines += by
    depends: dict[str, Any] = {}
    should: dict[str, Any] = {}
    if observed and history.writer and _are_finite(one[element], right[element]):
        depends, complete = _influences(launch, given, names, name, element, is_launch=True)
        should, as_well = _influences(reference, given, names, name, element, is_launch=False)
        lines += _of_what(depends, should, history.lines_of_reads(), lambda: _elsewhere(name, one, right, element))
        if not (complete and as_well):
            lines.append("  there are too many elements to try each: some of these do not count")
    return WrongResult(
        "\n".join(lines),
        at=at,
        hint=_hint(launch, given, names, history.writer, one[element], right[element]) if observed else _TO_CPU,
        tensor=name, element=element, found=one[element].item(), expected=right[element].item(),
        writer=history.writer, depends=depends, should_depend=should,
    )  # fmt: skip


def _who(history: _History, launch: Any, given: Any, name: str, one: Any) -> tuple[SourceLocation | None, list[str]]:
    """The place and lines that say who has written an element, or which launches have not."""
    if history.writer is not None:
        return history.writer.at, [f"  written last by {history.writer}"]
    launches = {(each.kernel, each.grid, each.block): None for each in history.launches}
    lines = ["  no thread has written it"]
    for kernel, grid, block in list(launches)[:_MOST_LINES]:
        lines.append(f"  {kernel}: grid {grid} x block {block} = {prod((*grid, *block))} threads")
    if len(launches) > _MOST_LINES:
        lines.append(f"  and {len(launches) - _MOST_LINES} other launches")
    lines[-1] += f"; {name} has {one.numel()} elements"
    return _place_of_launch(launch, given), lines


def _place_of_launch(launch: Any, given: Any) -> SourceLocation | None:
    """The line of a launcher that launches; None if there are several, or if it is no `flyc.jit` function."""
    if not hasattr(launch, "lower"):
        return None
    args, kwargs = copied(given)
    places = {kernel.at for kernel in launch.lower(*args, **kwargs).traced.kernels}
    return places.pop() if len(places) == 1 else None


def _hint(launch: Any, given: Any, names: Sequence[str], writer: Writer | None, value: Any, expected: Any) -> str:
    if race := race_in(launch, given, names):
        return race
    if writer is None:
        return "do the grid and the block cover the tensor, and does a condition leave it out?"
    if not value.dtype.is_floating_point and (overflow := overflow_in(launch, given, names)):
        return overflow
    if not _are_finite(value) and _are_finite(expected):
        return f'flydsl.simulator.checking("nan") finds the instruction that made it {_shown(value)}'
    return "with flydsl.interpreting(), a breakpoint in this line shows what it was made of"


def _are_finite(*values: Any) -> bool:
    """True unless one is a NaN or an infinity, which stays one whatever else is changed."""
    return all(not value.dtype.is_floating_point or bool(value.isfinite()) for value in values)


def _shown(value: Any) -> str:
    number = value.item()
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _count(name: str, wrong: Any) -> str:
    count, total = int(wrong.sum()), wrong.numel()
    if count == 1:
        return f"the other {total - 1} elements agree" if total > 1 else "it is the only element"
    if count == total:
        return f"all {total} elements differ"
    where = text_of(name, wrong)
    return f"{count} of {total} elements differ" + ("" if "more of" in where or "…" in where else f": {where}")


def _elsewhere(name: str, one: Any, right: Any, element: tuple[int, ...]) -> list[str]:
    """A line for a right value that is in one other place."""
    expected = right[element]
    if not element or not bool(expected):
        return []
    places = (one == expected).nonzero().tolist()
    return [f"  the reference's number is at {name}{places[0]}"] if len(places) == 1 else []


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


def _influences(
    function: Any, given: Any, names: Sequence[str], name: str, element: tuple[int, ...], *, is_launch: bool
) -> tuple[dict[str, Any], bool]:
    args, kwargs = again = copied(given)

    def call() -> None:
        with no_checks(), limited(instructions=_MOST_INSTRUCTIONS), interpreting(False):
            function(*args, **kwargs)

    plain = lambda: function(*args, **kwargs)  # noqa: E731
    probe = Probe(call if is_launch else plain, list(tensors_of(names, again)), name, element, _MOST_CALLS)
    return probe.influences(), probe.is_complete


def _observed(launch: Any, given: Any, names: Sequence[str], history: _History) -> bool:
    """Launch with an observer. False if the tensors are not on the CPU, where launches are observed."""
    args, kwargs = again = copied(given)
    if any(tensor.device.type != "cpu" for _, tensor in tensors_of(names, again)):
        return False
    with no_checks(), interpreting(False), observing(history):
        launch(*args, **kwargs)
    return True
