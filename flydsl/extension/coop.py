"""Alias of `fx.coop` under FlyDSL's other name."""

from flydsl.expr.coop import *  # noqa: F403
from flydsl.expr.coop import __getattr__ as __getattr__

__path__: list[str] = []  # a package, so that FlyDSL's modules below it are refused by their names
