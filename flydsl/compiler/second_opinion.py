"""A launch compiled and interpreted, on copies of its tensors: the first element that differs, and who wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flydsl.compiler.interpreted import interpreting
from flydsl.errors import ArgumentError, DeviceError
from flydsl.interpreter import Write, watched
from flydsl.places import user_location


class Disagreement(DeviceError):
    """A launch that gives one result compiled and another interpreted.

    tensor, element: where, by the launcher's argument and the element's coordinate. compiled, interpreted: the numbers
    there. write: who wrote it last where it was interpreted; None if nobody did.
    """

    def __init__(
        self, tensor: str, element: tuple[int, ...], count: int, compiled: Any, interpreted: Any, write: Write | None
    ) -> None:
        others = f", and {count - 1} more elements differ" if count > 1 else ""
        where = f"{tensor}[{', '.join(map(str, element))}]"
        by = "nothing wrote it where it was interpreted"
        if write is not None:
            by = f"written last by lane {write.lane}, thread {write.thread} of workgroup {write.workgroup}"
        super().__init__(
            f"{where} is {compiled} compiled and {interpreted} interpreted{others}\n  {by}",
            at=None if write is None else write.at,
            hint="one of both is wrong: stop in this line with flydsl.interpreting(), and look at what it is made of",
        )
        self.tensor, self.element, self.compiled, self.interpreted, self.write = (
            tensor, element, compiled, interpreted, write,
        )  # fmt: skip


def compare_interpreted(
    launch: Callable[..., Any], *args: Any, rtol: float = 1e-2, atol: float = 1e-3, **kwargs: Any
) -> None:
    """Launch on copies of the tensors, compiled and interpreted. Raises Disagreement at the first element that differs.

    args, kwargs: of the launcher; tensors may be in lists, tuples and dicts. rtol, atol: how far floats may differ, as
    in `torch.isclose`: results of matrix instructions and of `fx.math` are rounded elsewhere. Nothing is written to the
    tensors that are given.
    """
    if not callable(launch):
        raise ArgumentError(f"{launch!r} is not a launcher", at=user_location(), hint="a function with @flyc.jit")
    names = _names(launch, len(args), kwargs)
    compiled, interpreted = (_copied((args, kwargs)) for _ in range(2))
    with interpreting(False):
        launch(*compiled[0], **compiled[1])
    with interpreting():
        launch(*interpreted[0], **interpreted[1])
    found = zip(_tensors(names, compiled), _tensors(names, interpreted), strict=True)
    for (name, one), (_, other) in found:
        different = _different(one, other, rtol, atol)
        if bool(different.any()):
            element = tuple(int(i) for i in different.nonzero()[0])
            write = _writer(launch, (args, kwargs), names, name, element)
            raise Disagreement(name, element, int(different.sum()), one[element].item(), other[element].item(), write)


def _writer(
    launch: Callable[..., Any], given: Any, names: Sequence[str], name: str, element: tuple[int, ...]
) -> Write | None:
    """The last write to an element of a tensor, found by interpreting the launch again."""
    again = _copied(given)
    tensor = dict(_tensors(names, again))[name]
    offset = sum(i * stride for i, stride in zip(element, tensor.stride(), strict=True))
    address = tensor.data_ptr() + offset * tensor.element_size()
    with interpreting(), watched(address, tensor.element_size()) as writes:
        launch(*again[0], **again[1])
    return writes[-1] if writes else None


def _names(launch: Any, count: int, kwargs: Mapping[str, Any]) -> list[str]:
    signature = getattr(launch, "signature", None)
    known = [parameter.name for parameter in signature.parameters] if signature is not None else []
    return [*(known[i] if i < len(known) else f"argument {i}" for i in range(count)), *kwargs]


def _copied(value: Any) -> Any:
    """The same with copies of its tensors, in memory of their own and of the same strides."""
    import torch

    if isinstance(value, torch.Tensor):
        copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        copy.copy_(value)
        for name, held in vars(value).items():
            setattr(copy, name, held)
        return copy
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return type(value)(map(_copied, value)) if type(value) in (list, tuple) else value


def _tensors(names: Sequence[str], given: Any) -> Iterator[tuple[str, Any]]:
    args, kwargs = given
    for name, value in zip(names, [*args, *kwargs.values()], strict=True):
        yield from _tensors_in(name, value)


def _tensors_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors_in(f"{name}[{key!r}]", item)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _tensors_in(f"{name}[{i}]", item)


def _different(one: Any, other: Any, rtol: float, atol: float) -> Any:
    """A mask of the elements that differ by more than is allowed; NaNs are alike."""
    import torch

    if one.dtype.is_floating_point:
        return ~torch.isclose(other.double(), one.double(), rtol=rtol, atol=atol, equal_nan=True)
    return one != other
