"""Functions that `torch.compile` does not trace: a call breaks the graph, and runs as it does without."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_REASON = "it launches GPU kernels; flyc.custom_op makes an operator of it, for torch.compile with fullgraph=True"
_untraced: list[CodeType] = []


def untraced(function: F) -> F:
    """Mark a function as `torch.compiler.disable` does, without importing torch, and at no cost for its calls."""
    assert isinstance(function, FunctionType)
    _untraced.append(function.__code__)
    function._torchdynamo_disable = _Disabled()  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = _REASON  # type: ignore[attr-defined]
    return function


class _Disabled:
    """True. torch asks before it runs a function, and is then told to leave alone what the function calls, too."""

    def __bool__(self) -> bool:
        from torch._C._dynamo import eval_frame

        if hasattr(eval_frame, "set_code_exec_strategy"):  # in torch's later versions; others trace what is called
            skip = eval_frame._FrameAction.SKIP
            for code in _untraced:
                eval_frame.set_code_exec_strategy(code, eval_frame._FrameExecStrategy(skip, skip))
        return True
