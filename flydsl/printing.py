"""The output of kernels: the records that they write to a buffer, and the lines that the host makes of them.

The buffer begins with three 64-bit numbers: how many 32-bit words its records take (also those that found no room),
how many there is room for, and how many records found none. A record is the number of its `Format`, from 1; the
workgroup's x, y and z; the thread's x, y and z, 10 bits each; and the values.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

FORMATS = "fly.formats"
"""The attribute of a module that holds the formats of its kernels' printfs, as JSON. With it, they have a buffer."""
HOST_FORMATS = "fly.host_formats"
"""That of the formats of its launcher."""
HOST_PRINTF = "flydsl_host_printf"
"""What a printf of a launcher calls, with the number of its `Format`, from 1, and the address of its values."""
HEADER_WORDS = 6
RECORD_WORDS = 5
THREAD_BITS = 10
_THREAD_MASK = (1 << THREAD_BITS) - 1

# Kinds of values: struct codes and words.
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
    """The format of one `printf`, or of a `refuse`.

    text: with Python's `{}`. kinds: of its values. refusal: (package that refuses, or ""; hint).
    """

    text: str
    kinds: tuple[Kind, ...]
    refusal: tuple[str, str] | None = None

    def line(self, data: bytes) -> str:
        """The text with the values decoded from these bytes."""
        codes = "".join(_CODES[leaf] for kind in self.kinds for leaf in _leaves(kind))
        values = iter(struct.unpack(f"<{codes}", data))
        return self.text.format(*[_shown(kind, values) for kind in self.kinds])

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
        return json.dumps([self.text, self.kinds, self.refusal])

    @staticmethod
    def from_json(text: str) -> Format:
        """The format that `to_json` wrote."""
        shown, kinds, refusal = json.loads(text)
        return Format(shown, tuple(kinds), refusal and tuple(refusal))


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


def lines(words: bytes, formats: Sequence[Format]) -> list[str]:
    """The lines of records, ordered by workgroup, thread, and time of printing within a thread.

    What was not written to its end, by a kernel that failed, is left out, with all that follows it.
    """
    found: list[tuple[tuple[int, ...], str]] = []
    at = 0
    while at + RECORD_WORDS * _WORD_BYTES <= len(words):
        number, x, y, z, thread = struct.unpack_from(f"<{RECORD_WORDS}I", words, at)
        at += RECORD_WORDS * _WORD_BYTES
        if not 1 <= number <= len(formats) or at + formats[number - 1].size_bytes > len(words):
            break
        size_bytes = formats[number - 1].size_bytes
        place = tuple(thread >> shift & _THREAD_MASK for shift in (2 * THREAD_BITS, THREAD_BITS, 0))
        found.append(((z, y, x, *place), formats[number - 1].line(words[at : at + size_bytes])))
        at += size_bytes
    return [line for _, line in sorted(found, key=lambda record: record[0])]
