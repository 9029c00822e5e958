"""The elements of a call's tensors that one element of its result depends on, found by changing them.

Some elements are replaced, the call is made again, and the result is looked at: if it is still the same, it depends on
none of them; else halves of them are tried. So this holds for whatever the call does: shared memory, shuffles, matrix
instructions, another GPU's code, or torch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

_MOST_LISTED, _MOST_BOXES = 4, 3

Box = tuple[range, ...]


@dataclass
class Probe:
    """A call that is made again and again.

    call: makes it. tensors: that it is given, by name. result, element: what is looked at, one of the tensors and a
    coordinate. most_calls: how many of them may be made in all.
    """

    call: Callable[[], Any]
    tensors: Sequence[tuple[str, Any]]
    result: str
    element: tuple[int, ...]
    most_calls: int

    def __post_init__(self) -> None:
        self._before = [tensor.clone() for _, tensor in self.tensors]
        self._value = self._called()

    def influences(self) -> dict[str, Any]:
        """A mask for each tensor: of the elements, as they were before the call, that the result depends on."""
        found = {}
        for number, (name, tensor) in enumerate(self.tensors):
            found[name] = mask = _nowhere(tensor)
            if tensor.numel():
                self._search(number, tuple(range(extent) for extent in tensor.shape), mask, known=False)
        self._restore()
        return found

    @property
    def is_complete(self) -> bool:
        """False if the calls did not suffice: the masks then have whole blocks of which some elements count."""
        return self.most_calls > 0

    def _search(self, number: int, box: Box, mask: Any, *, known: bool) -> bool:
        """Mark what counts in a box, and say whether anything does. known: that something does."""
        if not known and not self._depends_on(number, box):
            return False
        if all(len(extent) == 1 for extent in box) or not self.is_complete:
            mask[_index(box)] = True
            return True
        first, second = _halves(box)
        in_first = self._search(number, first, mask, known=False)
        self._search(number, second, mask, known=not in_first)
        return True

    def _depends_on(self, number: int, box: Box) -> bool:
        """True if the result is another one when these elements are, or if every call with others ends in an error."""
        found, changes = [], _changes(self._before[number])
        for change in changes:
            self._restore()
            part = self.tensors[number][1]
            part[_index(box)] = change(part[_index(box)])
            found.append(self._called())
            if found[-1] not in (self._value, None):
                return True
        return found == [None] * len(changes)

    def _restore(self) -> None:
        for (_, tensor), before in zip(self.tensors, self._before, strict=True):
            tensor.copy_(before)

    def _called(self) -> Any:
        """The element that the call makes, to the bit; None if it fails: with another index, in some thread."""
        import torch

        self.most_calls -= 1
        try:
            self.call()
        except (RuntimeError, IndexError):  # an index that is changed may be outside, a loop endless
            return None
        value = dict(self.tensors)[self.result][self.element]
        return value.reshape(1).contiguous().view(torch.uint8).tolist()


def _nowhere(tensor: Any) -> Any:
    import torch

    return torch.zeros(tensor.shape, dtype=torch.bool)


def _changes(tensor: Any) -> list[Callable[[Any], Any]]:
    """Other values: at least one of them makes a difference where a value counts, also for a maximum.

    Integers stay within those that there are: they may be indices.
    """
    import torch

    kind = tensor.dtype
    if kind.is_floating_point:
        large = torch.finfo(kind).max / 4
        return [partial(_filled, to=to) for to in (float("nan"), large, -large)]
    if kind == torch.bool:
        return [lambda part: ~part]
    least, most = int(tensor.min()), int(tensor.max())
    if least == most:
        return [lambda part: part + 1, lambda part: part - 1]
    return [lambda part: torch.where(part == most, least, part + 1).to(kind), lambda part: least + most - part]


def _filled(part: Any, *, to: float) -> Any:
    import torch

    return torch.full(part.shape, to).to(part.dtype)


def _index(box: Box) -> tuple[slice, ...]:
    return tuple(slice(extent.start, extent.stop) for extent in box)


def _halves(box: Box) -> tuple[Box, Box]:
    """A box cut in two along its longest mode."""
    longest = max(range(len(box)), key=lambda mode: len(box[mode]))
    middle = box[longest].start + (len(box[longest]) + 1) // 2
    parts = range(box[longest].start, middle), range(middle, box[longest].stop)
    first, second = ((*box[:longest], part, *box[longest + 1 :]) for part in parts)
    return first, second


def text_of(name: str, mask: Any) -> str:
    """The elements of a mask, as slices.

    >>> import torch
    >>> mask = torch.zeros(8, 8, dtype=torch.bool)
    >>> mask[2, 1::2] = True
    >>> text_of("a", mask)
    'a[2, 1::2]'
    >>> mask[4, 0] = True
    >>> text_of("a", mask)
    'a[2, 1::2], a[4, 0]'
    """
    coordinates = [tuple(coordinate) for coordinate in mask.nonzero().tolist()]
    if not coordinates:
        return f"nothing of {name}"
    if not mask.ndim:
        return name
    boxes = _boxes(coordinates)
    texts = [f"{name}[{', '.join(_slice(mode, size) for mode, size in zip(box, mask.shape, strict=True))}]"
             for box in boxes[:_MOST_BOXES]]  # fmt: skip
    left = len(coordinates) - sum(_count(box) for box in boxes[:_MOST_BOXES])
    return ", ".join(texts) + (f", and {left} more of its elements" if left else "")


def _boxes(coordinates: Sequence[tuple[int, ...]]) -> list[list[list[int]]]:
    """The coordinates as products of sets of numbers along each mode."""
    modes = [sorted(set(numbers)) for numbers in zip(*coordinates, strict=True)]
    if _count(modes) == len(coordinates):
        return [modes]
    assert set(coordinates) <= set(product(*modes))
    rests: dict[int, set[tuple[int, ...]]] = {}
    for first, *rest in coordinates:
        rests.setdefault(first, set()).add(tuple(rest))
    alike: dict[frozenset[tuple[int, ...]], list[int]] = {}
    for first, others in rests.items():
        alike.setdefault(frozenset(others), []).append(first)
    return [[firsts, *box] for others, firsts in alike.items() for box in _boxes(sorted(others))]


def _count(box: Sequence[Sequence[int]]) -> int:
    count = 1
    for numbers in box:
        count *= len(numbers)
    return count


def _slice(numbers: Sequence[int], size: int) -> str:
    """Numbers along a mode.

    >>> _slice([3], 8), _slice(range(8), 8), _slice(range(2, 8), 8), _slice(range(3), 8), _slice([1, 3, 5], 8)
    ('3', ':', '2:', ':3', '1:6:2')
    >>> _slice([1, 2, 5], 8)
    '[1, 2, 5]'
    """
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return str(first)
    step = numbers[1] - first
    if list(numbers) != list(range(first, last + 1, step)):
        listed = ", ".join(map(str, numbers[:_MOST_LISTED]))
        return f"[{listed}{', …' if len(numbers) > _MOST_LISTED else ''}]"
    stop = "" if last + step >= size else str(last + 1)
    return f"{first or ''}:{stop}" + ("" if step == 1 else f":{step}")
