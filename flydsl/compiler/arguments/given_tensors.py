"""The tensors among the arguments of a call, by name, and copies of them in memory of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def names_of(launch: Any, count: int, kwargs: Mapping[str, Any]) -> list[str]:
    """The names of a launcher's arguments, of which `count` are given by position."""
    signature = getattr(launch, "signature", None)
    known = [parameter.name for parameter in signature.parameters] if signature is not None else []
    return [*(known[i] if i < len(known) else f"argument {i}" for i in range(count)), *kwargs]


def copied(value: Any) -> Any:
    """The same with copies of its tensors, in memory of their own and of the same strides."""
    import torch

    if isinstance(value, torch.Tensor):
        copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        copy.copy_(value)
        for name, held in vars(value).items():
            setattr(copy, name, held)
        return copy
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return type(value)(map(copied, value)) if type(value) in (list, tuple) else value


def tensors_of(names: Sequence[str], given: Any) -> Iterator[tuple[str, Any]]:
    """The tensors of a call, each with its name. given: args and kwargs."""
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


def differing(one: Any, other: Any, rtol: float, atol: float) -> Any:
    """A mask of the elements that differ by more than is allowed; NaNs are alike."""
    import torch

    if one.dtype.is_floating_point:
        return ~torch.isclose(other.double(), one.double(), rtol=rtol, atol=atol, equal_nan=True)
    return one != other
