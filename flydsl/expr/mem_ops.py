"""`fx.buffer_ops` under FlyDSL's other name for it."""

from flydsl.expr.buffer_ops import *  # noqa: F403
