"""Import paths that the DSL's documents promise: `flydsl.utils.env`, `flydsl.utils.smem_allocator`."""
