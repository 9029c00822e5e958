"""Errors as the user sees them: at a line of theirs, in a traceback without the compiler's frames."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import mlir

from flydsl.compiler.python_error import ATTRIBUTE_HOOKS, as_fault, as_trace_error
from flydsl.errors import FlyError, SourceLocation
from flydsl.errors.places import PACKAGES, is_user_frame, line_outside_of, location_of, steps_of, user_location
from flydsl.system.torch_compile import untraced

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OF_MLIR = tuple(path + os.sep for path in mlir.__path__)
_HIDDEN = (*PACKAGES, *_OF_MLIR)
# Decorators' contexts, and what runs the script of a command.
_BETWEEN = (contextlib.__file__, "<frozen runpy>")
# MLIR, and what hands the user's calls to it: where the user called it, what fails in it is the user's error.
_PASSING_ON = (*_OF_MLIR, *(os.path.join(_PACKAGE, "_mlir", file) for file in ("faces.py", "passmanager.py")))


def user_facing(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that the user calls: errors leave it with the user's traceback, a FlyError with its place.

    `torch.compile` does not trace it.
    """

    @untraced
    @functools.wraps(untraced(function))
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            shown = shown_to_user(error)
            traceback = shown.__traceback__
            if sys.version_info < (3, 11):
                # A bare `raise` would take the traceback that it was caught with; this adds one frame of this function.
                raise shown from shown.__cause__
            if shown is error:
                raise  # without a name: so Python adds no frame of this function
            try:
                raise shown
            except type(shown):
                shown.__traceback__ = traceback
                raise

    return called


def shown_to_user(error: Exception | KeyboardInterrupt) -> Exception | KeyboardInterrupt:
    """The error that leaves the package instead of this one: with the user's frames, and a FlyError with a place.

    An error that Python itself raises at a user's line becomes a TraceError that is also an error of that kind.
    """
    at, traceback = _place(error), _users_steps(error)
    if isinstance(error, FlyError):
        error.located(line_outside_of(error.package) if error.package else at or user_location())
    elif isinstance(error, Exception):
        if at is not None and not _is_fault_of_package(error):
            return as_trace_error(error, at).with_traceback(traceback)
        made = as_fault(error, at or user_location())
        return error if made is error else made.with_traceback(traceback)
    return error.with_traceback(traceback)


def _uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None, show: Any = sys.excepthook
) -> None:
    """Python's hook for what ends a program: it is shown with the user's frames, unless it is this package's fault."""
    if traceback is not None and not _is_fault_of_package(error):
        error.__traceback__ = traceback = _users_steps(error)
    show(kind, error, traceback)


sys.excepthook = _uncaught


def _users_steps(error: BaseException) -> TracebackType | None:
    """The traceback without this package's frames, and without those of what it calls of Python's."""
    shown: list[TracebackType] = []
    is_below = False
    for step in steps_of(error):
        if _is_hidden(step):
            is_below = True
        elif is_user_frame(step.tb_frame) or not (is_below or step.tb_frame.f_code.co_filename.startswith(_BETWEEN)):
            shown.append(step)
            is_below = False
    following: TracebackType | None = None
    for step in reversed(shown):
        following = TracebackType(following, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return following


def _place(error: BaseException) -> SourceLocation | None:
    """The user's innermost line that an error passed through."""
    users = [step for step in steps_of(error) if is_user_frame(step.tb_frame) and not _is_hidden(step)]
    return location_of(users[-1].tb_frame.f_code, users[-1].tb_lasti, users[-1].tb_lineno) if users else None


def _is_fault_of_package(error: BaseException) -> bool:
    """True if this package raised it, or MLIR on its behalf.

    A missing attribute is the fault of the code that asked for it.
    """
    if isinstance(error, FlyError | KeyboardInterrupt):
        return False
    raised_in = [step for step in steps_of(error) if not _passes_on(step)]
    return bool(raised_in) and _is_hidden(raised_in[-1]) and not isinstance(error, RecursionError)


def _passes_on(traceback: TracebackType) -> bool:
    code = traceback.tb_frame.f_code
    return code.co_name in ATTRIBUTE_HOOKS or code.co_filename.startswith(_PASSING_ON)


def _is_hidden(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(_HIDDEN)
