"""From the traced module to machine code and the host's launches: the steps around MLIR's passes."""
