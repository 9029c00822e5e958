"""MLIR's dialects, and the names of FlyDSL's own; see `flydsl._mlir`."""
