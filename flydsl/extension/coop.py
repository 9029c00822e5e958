"""Alias of `fx.coop` under FlyDSL's other name."""

from flydsl.expr.coop import *  # noqa: F403
from flydsl.expr.coop import __getattr__ as __getattr__
