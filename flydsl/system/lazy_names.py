"""Names of a package that are imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from flydsl.errors import MissingName, did_you_mean


def lazy_names(package: str, names_by_module: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are those of some modules, separated by spaces.

    >>> lazy_names("flydsl", {"flydsl.errors": "ArgumentError LaunchError"})("LaunchError")
    <class 'flydsl.errors.LaunchError'>
    >>> lazy_names("flydsl", {"flydsl.errors": "ArgumentError LaunchError"})("LaunchEror")
    Traceback (most recent call last):
        ...
    flydsl.errors.MissingName: ...
      hint: did you mean LaunchError?
    """
    homes = {name: module for module, names in names_by_module.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in homes:
            says = f"module {package!r} has no attribute {name!r}"
            if name.startswith("_"):  # Python asks for such names by itself
                raise AttributeError(says)
            raise MissingName(says, hint=did_you_mean(name, homes).strip() or None)
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
