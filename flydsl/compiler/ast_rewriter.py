"""The rewriting of Python's control flow, under FlyDSL's name. The code is in `flydsl.compiler.rewrite`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from flydsl.compiler.rewrite import rewrite
from flydsl.expr.control_flow import RUNTIME

__all__ = ["ASTRewriter", "CanonicalizeWhile", "InsertEmptyYieldForSCFFor", "ReplaceIfWithDispatch"]


class ReplaceIfWithDispatch:
    """Stands for the rewriting of `if`."""


class InsertEmptyYieldForSCFFor:
    """Stands for the rewriting of `for`."""


class CanonicalizeWhile:
    """Stands for the rewriting of `while`."""


class ASTRewriter:
    """`ASTRewriter.transform(function)`: the function with its runtime control flow traced.

    transformers: what is rewritten. A subclass may leave some out, as programs do that build a loop by hand; then
    nothing changes, because a statement on values that are known when compiling stays Python's anyway.
    rewrite_globals: the names that rewritten code calls.
    """

    transformers: ClassVar[list[type]] = [ReplaceIfWithDispatch, InsertEmptyYieldForSCFFor, CanonicalizeWhile]
    rewrite_globals: ClassVar[dict[str, Any]] = dict(RUNTIME)

    @classmethod
    def transform(cls, function: Callable[..., Any]) -> Callable[..., Any]:
        """See `flydsl.compiler.rewrite.rewrite`."""
        return rewrite(function)
