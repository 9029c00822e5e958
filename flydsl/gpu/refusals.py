"""Refusals: functions that say what a posed GPU does not have, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.compiler.user_error import user_facing
from flydsl.errors import DeviceError


def refusing(name: str, hint: str) -> Callable[..., Any]:
    """A function that takes any arguments, and raises a DeviceError which says that `name` is unsupported."""

    @user_facing
    def refuse(*args: Any, **options: Any) -> Any:
        raise DeviceError(f"{name} is unsupported on a posed GPU", hint=hint)

    return refuse
