"""Alias of `fx.random` under FlyDSL's other name."""

from flydsl.expr.random import *  # noqa: F403
from flydsl.extension.random import universal as universal
