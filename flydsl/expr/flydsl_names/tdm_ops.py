"""`fx.rocdl.tdm_ops` under the path that FlyDSL programs also use."""

from flydsl.expr.rocdl.tdm_ops import *  # noqa: F403
