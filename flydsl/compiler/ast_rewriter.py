"""The rewriting of Python's control flow, under FlyDSL's name. The code is in `flydsl.compiler.rewrite`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from flydsl.compiler.rewrite import rewrite
from flydsl.expr.control_flow import RUNTIME, dispatch
from flydsl.expr.flydsl_names.names import unknown_name

__all__ = ["ASTRewriter", "CanonicalizeWhile", "InsertEmptyYieldForSCFFor", "ReplaceIfWithDispatch"]


class ReplaceIfWithDispatch:
    """Stands for the rewriting of `if`, and has it as functions: see `flydsl.expr.control_flow.dispatch`."""

    scf_if_dispatch = staticmethod(dispatch.scf_if_dispatch)
    scf_ifexp_dispatch = staticmethod(dispatch.scf_ifexp_dispatch)


class InsertEmptyYieldForSCFFor:
    """Stands for the rewriting of `for`, and has it as functions."""

    scf_for_dispatch = staticmethod(dispatch.scf_for_dispatch)
    scf_range = staticmethod(dispatch.scf_range)


class CanonicalizeWhile:
    """Stands for the rewriting of `while`, and has it as a function."""

    scf_while_dispatch = staticmethod(dispatch.scf_while_dispatch)


class ASTRewriter:
    """`ASTRewriter.transform(function)`: the function with its runtime control flow traced.

    transformers: what is rewritten. A subclass may leave some out, as programs do that build a loop by hand; then
    nothing changes, because a statement on values that are known at compile time stays Python's anyway.
    rewrite_globals: the names that rewritten code calls.
    """

    transformers: ClassVar[list[type]] = [ReplaceIfWithDispatch, InsertEmptyYieldForSCFFor, CanonicalizeWhile]
    rewrite_globals: ClassVar[dict[str, Any]] = dict(RUNTIME)

    @classmethod
    def transform(cls, function: Callable[..., Any]) -> Callable[..., Any]:
        """See `flydsl.compiler.rewrite.rewrite`."""
        return rewrite(function)


__getattr__ = unknown_name(__name__, globals())
