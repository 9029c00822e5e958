"""Alias of `fx.coop` under FlyDSL's other name."""

from flydsl.expr.coop import *  # noqa: F403
from flydsl.expr.coop import __getattr__ as __getattr__
from flydsl.extension.coop import block as block
from flydsl.extension.coop import universal as universal
from flydsl.extension.coop import warp as warp
