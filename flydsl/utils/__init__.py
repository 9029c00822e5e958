"""Import paths that the DSL's documents promise: `flydsl.utils.env`, `flydsl.utils.smem_allocator`, `log`."""

from flydsl.utils import env
from flydsl.utils.logger import log

__all__ = ["env", "log"]
