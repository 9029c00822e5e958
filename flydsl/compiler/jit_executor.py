"""The executor of a compiled launcher, under FlyDSL's names. The code is in `flydsl.compiler.artifact`."""

from flydsl.compiler.artifact import CompiledArtifact
from flydsl.expr.flydsl_names.names import unknown_name

__all__ = ["CompiledArtifact", "JITCFunction", "JitCompiledFunction"]

JITCFunction = JitCompiledFunction = CompiledArtifact

__getattr__ = unknown_name(__name__, globals())
