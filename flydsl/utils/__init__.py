"""Import paths that the DSL's documents promise: `flydsl.utils.env`."""
