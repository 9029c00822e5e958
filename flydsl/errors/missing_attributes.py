"""Errors for attributes that an object does not have: the name that was meant, or where to look instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from flydsl.errors import MissingName, did_you_mean


class _LiveView:
    """The attribute `explore` as long as nothing has added the method: reading it says what does."""

    def __get__(self, instance: object, owner: type) -> NoReturn:
        hint = "%load_ext workbench adds it in a notebook, and workbench.explore(...) is the same"
        raise MissingName(f"{owner.__name__!r} object has no attribute 'explore'", hint=hint)


class Explorable:
    """A class that has a live view: its method `explore` comes with the notebook extension."""

    __slots__ = ()
    explore = _LiveView()


class Explained(Explorable):
    """A class that says, of an attribute that it does not have, where people find what they look for.

    elsewhere: by the name that is asked for.
    """

    elsewhere: ClassVar[Mapping[str, str]] = MappingProxyType({})

    if not TYPE_CHECKING:  # for a type checker the attributes are those of the class

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name) or name == "explore":
                return object.__getattribute__(self, name)  # a property raised this error: it says why
            known = [other for other in dir(type(self)) if not other.startswith("_") and other != "elsewhere"]
            hint = self.elsewhere.get(name) or ("" if name.startswith("_") else did_you_mean(name, known).strip())
            hint = hint or f"it has {', '.join(known)}"
            raise MissingName(f"{type(self).__name__!r} object has no attribute {name!r}", hint=hint)
