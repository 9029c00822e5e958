"""What runs a compiled launcher, under FlyDSL's names for it; it is in `flydsl.compiler.artifact`."""

from flydsl.compiler.artifact import CompiledArtifact

__all__ = ["CompiledArtifact", "JITCFunction", "JitCompiledFunction"]

JITCFunction = JitCompiledFunction = CompiledArtifact
