"""The rewriting of Python's control flow, under FlyDSL's name. The code is in `flydsl.compiler.rewrite`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.compiler.rewrite import rewrite

__all__ = ["ASTRewriter"]


class ASTRewriter:
    """`ASTRewriter.transform(function)`: the function with its runtime control flow traced."""

    @staticmethod
    def transform(function: Callable[..., Any]) -> Callable[..., Any]:
        """See `flydsl.compiler.rewrite.rewrite`."""
        return rewrite(function)
