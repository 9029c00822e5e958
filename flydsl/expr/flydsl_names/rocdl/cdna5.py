"""FlyDSL's names for this architecture. The functions check the target by themselves."""

from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.rocdl.matrix_atoms import WMMAScale
from flydsl.expr.rocdl.tdm_atom import make_tdm_atom
from flydsl.expr.rocdl.tiled_tdm import TensorLoad, TensorStore, make_tiled_tdm_atom, tdm_partition

__all__ = ["TensorLoad", "TensorStore", "WMMAScale", "make_tdm_atom", "make_tiled_tdm_atom", "tdm_partition"]

__getattr__ = unknown_name("flydsl.expr.rocdl.cdna5", globals())
