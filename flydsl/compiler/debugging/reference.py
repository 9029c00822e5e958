"""A launch against a reference: the first element that is wrong, who wrote it, and what each of them made it of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flydsl.compiler.debugging.calls import Call, differing
from flydsl.compiler.debugging.interpreted import interpreting
from flydsl.compiler.debugging.wrong_results import WrongTensor, explain
from flydsl.errors import ArgumentError
from flydsl.errors.places import user_location

_EPSILONS = 8


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
    given = Call.of_launcher(launch, args, kwargs)
    launched = given.copy()
    expected = replace(given.copy(), function=reference)
    with interpreting(False):
        launched()
    _write_reference(expected, launched)
    for (name, one), (_, right) in zip(launched.tensors(), expected.tensors(), strict=True):
        mask = differing(right, one, *_allowed(right, rtol, atol))
        if bool(mask.any()):
            raise explain(WrongTensor(name, one, right, mask), given, replace(given, function=reference))


def _write_reference(reference: Call, launched: Call) -> None:
    """Call the reference, and refuse one that has written to no tensor. launched: the launch, after it was made."""
    tensors = list(reference.tensors())
    before = [(_version(tensor), tensor.clone()) for _, tensor in tensors]
    returned = reference()
    for (_, tensor), (version, content) in zip(tensors, before, strict=True):
        if version is None or _version(tensor) != version or bool(differing(content, tensor, 0.0, 0.0).any()):
            return
    returns = "" if returned is None else f", and its {type(returned).__name__} is not looked at"
    after = zip(before, launched.tensors(), strict=True)
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
