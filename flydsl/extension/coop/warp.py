"""The operations of waves of `fx.coop`, under FlyDSL's name."""

from flydsl.expr import coop as _coop
from flydsl.expr.flydsl_names.names import unknown_name

__all__ = [name for name in _coop.__all__ if name.lower().startswith("warp")]
globals().update({name: getattr(_coop, name) for name in __all__})
__path__: list[str] = []  # a package to `import`, which then says what of FlyDSL's is not in it
__getattr__ = unknown_name("flydsl.extension.coop", globals())
