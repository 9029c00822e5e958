"""Names of a package that are imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, names_by_module: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are those of some modules, separated by spaces.

    >>> lazy_names("flydsl", {"flydsl.errors": "ArgumentError LaunchError"})("LaunchError")
    <class 'flydsl.errors.LaunchError'>
    """
    homes = {name: module for module, names in names_by_module.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
