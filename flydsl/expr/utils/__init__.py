"""FlyDSL's import paths for modules that are elsewhere in this package: `flydsl.expr.utils.arith`."""
