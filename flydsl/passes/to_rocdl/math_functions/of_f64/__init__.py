"""Mathematical functions of f64. Sums of two f64 carry what one rounding would lose."""

from flydsl.passes.to_rocdl.math_functions.of_f64 import error_functions, exponential, trigonometric

__all__ = ["error_functions", "exponential", "trigonometric"]
