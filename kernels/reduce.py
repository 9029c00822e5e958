"""Reductions by the threads that share a row: those of `fx.coop`, under the name that programs import."""

from flydsl.expr.coop import block_reduce, vector_reduce, warp_reduce

__all__ = ["block_reduce", "vector_reduce", "warp_reduce"]
