"""FlyDSL's names for this architecture. The functions check the target by themselves."""

from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.rocdl.matrix_atoms import WMMAScale
from flydsl.expr.rocdl.tdm_atom import make_tdm_atom

__all__ = ["WMMAScale", "make_tdm_atom"]

__getattr__ = unknown_name("flydsl.expr.rocdl.cdna5", globals())
