"""Numbers and vectors: their operators, promotion and conversions. The types are in `flydsl.expr.numeric`."""
