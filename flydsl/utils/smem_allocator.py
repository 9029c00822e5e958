"""`flydsl.expr.memory.smem_allocator` under the name that the DSL's documents promise."""

from flydsl.expr.memory.smem_allocator import *  # noqa: F403
