"""Operations of AMD GPUs. None is there yet; using one says so."""

from flydsl.expr.names import unknown_name

__getattr__ = unknown_name(__name__, globals())
