"""FlyDSL's import path for libraries made of the DSL: `from flydsl.extension import coop`."""
