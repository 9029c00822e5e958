"""Paths of `flydsl.expr.rocdl` that FlyDSL's programs use, and that hold nothing of their own."""
