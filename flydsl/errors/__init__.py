"""Every error a user can meet: what went wrong, where, and what to do.

A `FlyError` carries a message, the place in the user's source that caused it and a hint. Its text is complete on
its own (message, file and line, the source line with a caret, hint), so it reads the same in a terminal, in a log
and in a notebook, where IPython shows that text in place of the stack of compiler frames.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any

from flydsl.errors.places import SourceLocation, innermost_place

# The elements of an array, where a message names it: they say little, and may take a page.
_ARRAY = re.compile(r"\b(tensor|array)\(\[[^()]{60,}?\][^()\[\]]*\)")


class FlyError(Exception):
    """The base of all errors that flydsl raises on purpose.

    message: what went wrong, with the values that disagree.
    at: the place in the user's source, where one is known.
    hint: what to do about it.
    package: of Python's, which refuses what its caller gave it; "" where the user's innermost line is the cause.
    """

    package = ""

    def __init__(self, message: str, *, at: SourceLocation | None = None, hint: str | None = None) -> None:
        self.message = _ARRAY.sub(r"\1([…])", message)
        super().__init__(self.message)
        self.at = at
        self.hint = hint

    def located(self, at: SourceLocation | None) -> FlyError:
        """Set the place, unless the error already has a more precise one."""
        if self.at is None:
            self.at = at
        return self

    def __str__(self) -> str:
        lines = [self.message]
        at = self.at or innermost_place(self)
        if at is not None:
            lines.append(f"  at {at}")
            lines.extend(at.excerpt())
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: what a notebook shows instead of the stack."""
        return [*f"{type(self).__name__}: {self}".splitlines(), *getattr(self, "__notes__", ())]


class LayoutError(FlyError, ValueError):
    """Operands that an operation of the layout algebra does not accept."""


class TraceError(FlyError):
    """Python in a kernel or launcher that cannot be turned into device code."""


class ArgumentError(FlyError, TypeError, ValueError):
    """An argument whose type or value a kernel, a launcher or an operation does not accept."""


class MissingName(FlyError, AttributeError):
    """A name that a module or an object does not have. hint: where people find what they look for."""


class MissingImport(FlyError, ModuleNotFoundError):
    """A name or a module that an `import` asks for and that is not there."""


class OutOfRange(FlyError, IndexError):
    """A number of something that there is less of."""


class IndexOutOfRange(ArgumentError, OutOfRange):
    """An index past the elements of a vector."""


class MissingFile(FlyError, FileNotFoundError):
    """A file that is not there."""


class LaunchError(FlyError, ValueError):
    """A launch configuration that no device accepts."""


class ArchError(FlyError, ValueError):
    """An unknown architecture, or one that does not have what was asked of it."""


class CompileError(FlyError):
    """A stage of the pipeline failed."""


class DeviceError(FlyError, RuntimeError):
    """The device runtime reported a failure."""


class DeviceAssertion(DeviceError, AssertionError):
    """An assertion of a kernel does not hold. threads: how many of them came upon that, as far as was recorded."""

    threads = 1

    @property
    def simulation(self) -> Any:
        """Raises MissingName: a launch goes on to its end after an assertion, so it stands before no instruction."""
        raise MissingName(
            "a DeviceAssertion has no simulation: it is no instruction that raises it",
            hint="launch with flydsl.interpreting(), and the same checking(...) if one was on: it stops at the line, "
            "and pdb.pm() or %debug shows the values in its lanes",
        )


class SimulatorError(DeviceError):
    """The simulated program did something that hardware would not survive, or that the simulator does not support."""

    _again: Callable[[], Any] | None = None
    _recording: Any = None

    def offer_simulation(self, again: Callable[[], Any]) -> None:
        """Have `simulation` made by a function, and say that it is there."""
        self._again = again
        if hasattr(self, "add_note"):  # from Python 3.11 on
            self.add_note(
                "  error.simulation stands before this instruction, and goes back; in a notebook, error.explore() "
                "(both first execute the workgroup again, step by step)"
            )

    @property
    def simulation(self) -> Any:
        """A `flydsl.simulator.Recording` of the workgroup, which stands before the instruction and can go back.

        It is made when it is asked for, on copies of the call's tensors as they are then: what the failed launch has
        written is in them. Raises MissingName for an error of no call of a launcher, and SimulatorError if the error
        does not come again.
        """
        if self._again is None:
            raise MissingName(
                "this error has no simulation", hint="the error of a call of a @flyc.jit function has one"
            )
        if self._recording is None:
            self._recording = self._again()
        return self._recording


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The beginning of a hint: the known word with the same beginning as an unknown one, or the closest; empty if none.

    >>> did_you_mean("gfx924", ["gfx90a", "gfx942"])
    'did you mean gfx942? '
    """
    words = list(known)
    close = [other for other in words if word and other.startswith(word)]
    close = close or difflib.get_close_matches(word, words, n=1) or difflib.get_close_matches(word.lower(), words, n=1)
    return f"did you mean {close[0]}? " if close else ""
