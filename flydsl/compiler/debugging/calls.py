"""A call that debugging makes again and again, each time on copies of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call of a function. Its tensors are among the arguments, or in lists, tuples and dicts among them.

    names: of the arguments, those by position first.
    """

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    names: Sequence[str]

    @classmethod
    def of_launcher(cls, launcher: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        """A call whose arguments have the names of the launcher's parameters."""
        signature = getattr(launcher, "signature", None)
        known = [parameter.name for parameter in signature.parameters] if signature is not None else []
        names = (known[i] if i < len(known) else f"argument {i}" for i in range(len(args)))
        return cls(launcher, args, kwargs, [*names, *kwargs])

    def __call__(self) -> Any:
        return self.function(*self.args, **self.kwargs)

    def copy(self) -> Call:
        """The same call on copies of its tensors, in memory of their own and of the same strides."""
        return replace(self, args=_copied(list(self.args)), kwargs=_copied(dict(self.kwargs)))

    def tensors(self) -> Iterator[tuple[str, Any]]:
        """The tensors, each with its name."""
        for name, value in zip(self.names, [*self.args, *self.kwargs.values()], strict=True):
            yield from _tensors_in(name, value)

    @property
    def is_simulated(self) -> bool:
        """True if the tensors are on the CPU, whose launches are simulated: they can be checked and observed."""
        return all(tensor.device.type == "cpu" for _, tensor in self.tensors())


def differing(one: Any, other: Any, rtol: float, atol: float) -> Any:
    """A mask of the elements that differ by more than is allowed; NaNs are alike."""
    import torch

    if one.dtype.is_floating_point:
        return ~torch.isclose(other.double(), one.double(), rtol=rtol, atol=atol, equal_nan=True)
    return one != other


def _copied(value: Any) -> Any:
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
