"""FlyDSL's names: paths that hold nothing of their own, keywords, what is unsupported, what other languages call it."""

from __future__ import annotations

import sys
from types import ModuleType


def as_submodules(package: str, *modules: ModuleType) -> None:
    """Let programs import modules of this folder as modules of a package: `import flydsl.expr.mem_ops`."""
    for module in modules:
        sys.modules[f"{package}.{module.__name__.rpartition('.')[2]}"] = module
