"""Alias of `fx.buffer_ops` under FlyDSL's other name."""

from flydsl.expr.buffer_ops import *  # noqa: F403
