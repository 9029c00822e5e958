"""Operators that round narrow numbers as a GPU does: some of the host's kernels round sums on their way.

torch's kernels for GPUs add f16 and bf16 in f32 and round each result once (ATen's `acc_type<T, true>` and
`opmath_type`), and so do most of the host's. Those below do not: the gradient of a layer norm's weights over 1,024 rows
of f16 is wrong by 13 units in the last place in the mean, 0.25 if it is rounded once. They run in f32 here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_NARROW = (torch.float16, torch.bfloat16)
_ATEN = torch.ops.aten

_RESULTS: dict[Any, Sequence[int | None]] = {
    _ATEN.native_layer_norm.default: (0, None, None),
    _ATEN.native_group_norm.default: (0, None, None),
    _ATEN.native_layer_norm_backward.default: (1, 5, 6),
    _ATEN.native_group_norm_backward.default: (1, 4, 4),
    _ATEN.native_batch_norm.default: (0, None, None),
    _ATEN.native_batch_norm_backward.default: (1, 2, 2),
    _ATEN.embedding_dense_backward.default: (0,),
    _ATEN._log_softmax.default: (0,),
}
"""Of each result of an operator, the place of the operand whose type it has. None stays f32, as statistics do."""

_RUNNING = {_ATEN.native_batch_norm.default: (3, 4)}
"""The places of the operands that an operator updates."""

_ADDING = frozenset({_ATEN.add.Tensor, _ATEN.sub.Tensor, _ATEN.add_.Tensor, _ATEN.sub_.Tensor})
"""Operators whose second operand is multiplied by `alpha`: a number that the host's kernels round first."""

ROUNDED_ONCE = _ADDING | _RESULTS.keys()
"""The operators that `round_once` is for."""


def round_once(operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The results of an operator for tensors of the host, each number rounded once."""
    is_narrow = [isinstance(value, torch.Tensor) and value.dtype in _NARROW for value in args]
    if operator in _ADDING:
        if kwargs.get("alpha", 1) == 1 or not all(is_narrow[:2]) or args[0].dtype != args[1].dtype:
            return operator(*args, **kwargs)
        return _rounded_sum(operator, *args, **kwargs)
    if not any(is_narrow):
        return operator(*args, **kwargs)
    wide = [value.float() if narrow else value for value, narrow in zip(args, is_narrow, strict=True)]
    found = operator(*wide, **kwargs)
    for place in _RUNNING.get(operator, ()):
        if is_narrow[place]:
            args[place].copy_(wide[place])
    if isinstance(found, torch.Tensor):
        return _as_type_of(args, _RESULTS[operator][0], found)
    return tuple(_as_type_of(args, place, one) for one, place in zip(found, _RESULTS[operator], strict=True))


def _rounded_sum(operator: Any, one: torch.Tensor, other: torch.Tensor, alpha: Any) -> Any:
    """`one + alpha * other`, in the place of `one` if the operator changes it."""
    total = operator(one.float(), other.float(), alpha=alpha)
    return one.copy_(total) if operator._schema.is_mutable else total.to(one.dtype)


def _as_type_of(args: Sequence[Any], place: int | None, found: torch.Tensor | None) -> torch.Tensor | None:
    """A result in the type of the operand at a place, if there is one."""
    like = None if place is None else args[place]
    return found if found is None or like is None else found.to(like.dtype)
