"""FlyDSL's names for this architecture. The functions check the target by themselves."""

from flydsl.expr.flydsl_names.rocdl.cdna3 import s_waitcnt

__all__ = ["s_waitcnt"]
