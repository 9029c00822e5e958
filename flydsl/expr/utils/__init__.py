"""FlyDSL's import paths: `flydsl.expr.utils.arith`, and `fx.utils.print_typst`."""

from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.utils.print_typst import print_typst

__all__ = ["print_typst"]

__getattr__ = unknown_name(__name__, globals())
