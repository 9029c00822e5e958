"""The executor of a compiled launcher, under FlyDSL's names. The code is in `flydsl.compiler.artifact`."""

from flydsl.compiler.artifact import CompiledArtifact

__all__ = ["CompiledArtifact", "JITCFunction", "JitCompiledFunction"]

JITCFunction = JitCompiledFunction = CompiledArtifact
