"""The passes of the fly dialect: one module each, named like the pass, with `name` and `apply(module, arch)`."""
