"""Errors as the user meets them: at a line of theirs, in a traceback without the compiler's frames."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

import mlir

from flydsl.dialect.location import user_location
from flydsl.errors import FlyError

P = ParamSpec("P")
R = TypeVar("R")

_HIDDEN = tuple(path + os.sep for path in (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *mlir.__path__))


def user_facing(function: Callable[P, R]) -> Callable[P, R]:
    """Mark what the user calls: errors leave it with the traceback of the user's code, a FlyError with its place."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            show_user_code(error)
            raise error

    return called


def show_user_code(error: BaseException) -> None:
    """Prepare an error that is about to leave the package: its traceback, and the place of a FlyError without one."""
    error.__traceback__ = user_frames(error)
    if isinstance(error, FlyError):
        error.located(user_location())


def user_frames(error: BaseException) -> TracebackType | None:
    """The traceback of an error without frames of this package and of MLIR's bindings.

    An error that is neither a FlyError nor raised by the user's code is a fault of this package, and keeps them all.
    Ctrl-C is nobody's fault.
    """
    frames = []
    step = error.__traceback__
    while step is not None:
        frames.append(step)
        step = step.tb_next
    if not isinstance(error, FlyError | KeyboardInterrupt) and _is_fault_of_package(frames):
        return error.__traceback__
    shown: TracebackType | None = None
    for frame in reversed(frames):
        if not _is_hidden(frame):
            shown = TracebackType(shown, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shown


def _is_fault_of_package(frames: list[TracebackType]) -> bool:
    """Whether this package or MLIR raised it. An attribute that is not there is the fault of who asked for it."""
    raised_in = [frame for frame in frames if frame.tb_frame.f_code.co_name != "__getattr__"]
    return bool(raised_in) and _is_hidden(raised_in[-1])


def _is_hidden(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(_HIDDEN)
