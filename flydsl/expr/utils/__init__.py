"""Import paths of FlyDSL for what lies elsewhere here: `flydsl.expr.utils.arith`."""
