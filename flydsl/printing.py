"""The output of kernels: the records that they write to a buffer, and the lines that the host makes of them.

The buffer begins with three 64-bit numbers: how many 32-bit words its records take (also those that found no room),
how many there is room for, and how many records found none. A record is the number of its `Format`, from 1; the
workgroup's x, y and z; the thread's x, y and z, 10 bits each; and the values.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from flydsl.errors.places import SourceLocation

FORMATS = "fly.formats"
"""The attribute of a module that holds the formats of its kernels' printfs, as JSON; its kernels have a buffer then."""
HOST_FORMATS = "fly.host_formats"
"""The attribute that holds the formats of its launcher's printfs."""
HOST_PRINTF = "flydsl_host_printf"
"""The function that a launcher's printf calls, with its `Format`'s number, from 1, and the address of its values."""
HEADER_WORDS = 6
RECORD_WORDS = 5
THREAD_BITS = 10
_THREAD_MASK = (1 << THREAD_BITS) - 1

# Kinds of values, and their codes in `struct`.
_CODES = {"i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d", "bool": "I"}
_WORD_BYTES = 4

Kind = Any
"""One of `_CODES`, or ["text", what it says], ["list", kinds...], ["tuple", kinds...], ["layout", shape, stride]."""


class _Float32(float):
    """A 32-bit float. Without a format it is shown with as many digits as distinguish it from its neighbours."""

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if spec else str(self)

    def __str__(self) -> str:
        for digits in range(1, 10):
            text = f"{float(self):.{digits}g}"
            if struct.pack("<f", float(text)) == struct.pack("<f", self) or self != self:
                return repr(float(text))
        return repr(float(self))

    __repr__ = __str__


@dataclass(frozen=True)
class Format:
    """The format of one `printf`, `refuse` or `device_assert`, or of a check of indices.

    text: with Python's `{}`. kinds: of its values. refusal: (package that refuses, or ""; hint). asserted_at: the place
    of an assertion in the user's source. modes: of the tensor whose indices are checked; the values are as many indices
    and then as many sizes.
    """

    text: str
    kinds: tuple[Kind, ...]
    refusal: tuple[str, str] | None = None
    asserted_at: SourceLocation | None = None
    modes: int = 0

    def line(self, data: bytes) -> str:
        """The text with the values decoded from these bytes."""
        codes = "".join(_CODES[leaf] for kind in self.kinds for leaf in _leaves(kind))
        values = iter(struct.unpack(f"<{codes}", data))
        shown = [_shown(kind, values) for kind in self.kinds]
        return _outside(shown[: self.modes], shown[self.modes :]) if self.modes else self.text.format(*shown)

    @property
    def size_bytes(self) -> int:
        """The size of the values in bytes."""
        return struct.calcsize("<" + "".join(_CODES[leaf] for kind in self.kinds for leaf in _leaves(kind)))

    def check(self) -> None:
        """Raise ValueError for a text that does not fit the values."""
        names = [name for _, name, _, _ in Formatter().parse(self.text) if name is not None]
        places = {name or str(i) for i, name in enumerate(names)}
        if len(places) != len(self.kinds):
            raise ValueError(f"{len(places)} places for {len(self.kinds)} values")
        try:
            self.line(bytes(self.size_bytes))
        except (IndexError, KeyError, AttributeError, TypeError) as error:
            raise ValueError(str(error)) from None

    def to_json(self) -> str:
        """The format as text, for `from_json`."""
        at = self.asserted_at
        place = at and (at.file, at.line, at.column, at.end_column)
        return json.dumps([self.text, self.kinds, self.refusal, place, self.modes])

    @staticmethod
    def from_json(text: str) -> Format:
        """The format that `to_json` wrote."""
        shown, kinds, refusal, place, modes = json.loads(text)
        return Format(shown, tuple(kinds), refusal and tuple(refusal), place and SourceLocation(*place), modes)


def _leaves(kind: Kind) -> Iterator[str]:
    if isinstance(kind, str):
        yield kind
    elif kind[0] != "text":
        for part in kind[1:]:
            yield from _leaves(part)


def _shown(kind: Kind, values: Iterator[Any]) -> Any:
    if isinstance(kind, str):
        value = next(values)
        return bool(value) if kind == "bool" else _Float32(value) if kind == "f32" else value
    if kind[0] == "text":
        return kind[1]
    parts = [_shown(part, values) for part in kind[1:]]
    if kind[0] == "layout":
        return ":".join(map(_compact, parts))
    return parts if kind[0] == "list" else tuple(parts)


def _compact(tree: Any) -> str:
    """A shape or stride in layout notation: `(4,(2,8))`."""
    return f"({','.join(map(_compact, tree))})" if isinstance(tree, tuple) else str(tree)


def _outside(indices: Sequence[int], sizes: Sequence[int]) -> str:
    """The indices that lie outside of their modes."""
    wrong = [(mode, i, n) for mode, (i, n) in enumerate(zip(indices, sizes, strict=True)) if not 0 <= i < n]
    return "; ".join(
        f"index {i} of mode {mode}, which has {n} element{'s' * (n != 1)}"
        if len(sizes) > 1
        else f"index {i} of a tensor of {n} element{'s' * (n != 1)}"
        for mode, i, n in wrong
    )


@dataclass(frozen=True, order=True)
class Record:
    """A record that a thread wrote. workgroup, thread: z, y, x, as they are ordered. line: its text."""

    workgroup: tuple[int, ...]
    thread: tuple[int, ...]
    line: str = field(compare=False)
    asserted_at: SourceLocation | None = field(compare=False)


def records(words: bytes, formats: Sequence[Format]) -> list[Record]:
    """The records in a buffer, ordered by workgroup, thread, and time of writing within a thread.

    A record that a failed kernel has not finished is left out, with all that follow it.
    """
    found: list[Record] = []
    at = 0
    while at + RECORD_WORDS * _WORD_BYTES <= len(words):
        number, x, y, z, thread = struct.unpack_from(f"<{RECORD_WORDS}I", words, at)
        at += RECORD_WORDS * _WORD_BYTES
        if not 1 <= number <= len(formats) or at + formats[number - 1].size_bytes > len(words):
            break
        written = formats[number - 1]
        place = tuple(thread >> shift & _THREAD_MASK for shift in (2 * THREAD_BITS, THREAD_BITS, 0))
        line = written.line(words[at : at + written.size_bytes])
        found.append(Record((z, y, x), place, line, written.asserted_at))
        at += written.size_bytes
    return sorted(found)
