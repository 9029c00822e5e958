"""GPU kernels."""
