"""Sorting by digits: ranks of a block's items by some bits of theirs, and sorts that go from digit to digit.

A pass counts, for each digit and thread, the thread's items with that digit; the sum of the counts before is where they
begin (Satish, Harris, Garland: "Designing efficient sorting algorithms for manycore GPUs", 2009). Equal digits keep
their order, so passes from the lowest digit to the highest sort.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

from flydsl.dialect.location import argument_error
from flydsl.expr.coop.block_reductions import BlockScan, scan_memory
from flydsl.expr.coop.exchange import through
from flydsl.expr.coop.primitive import BlockPrimitive, Slots, array_of, like
from flydsl.expr.coop.sorting import columns_of
from flydsl.expr.gpu import barrier
from flydsl.expr.memory.atomics import atomic_add
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Int32, Uint8, Uint16, Uint32, Uint64

_UNSIGNED = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}
_MOST_COUNTERS = 4096  # of Int32: 16 KB
_MOST_PASS_BITS = 4


def ordered_bits(key: Any) -> Any:
    """A number's bits as an unsigned integer of the same order. Both zeros of floats are one; NaNs go by their bits."""
    dtype = key.dtype
    if dtype is Boolean:
        return key.select(Uint32(1), Uint32(0))
    unsigned = _UNSIGNED.get(dtype.width)
    if unsigned is None:
        raise argument_error(f"digits of {dtype.__name__}", "sort keys of 8 to 64 bits, or give their fields")
    top = 1 << (dtype.width - 1)
    if dtype.is_float:
        bits = (key == 0).select(dtype(0), key).bitcast(unsigned)
        return (bits >= unsigned(top)).select(~bits, bits ^ unsigned(top))
    bits = key.bitcast(unsigned) if dtype is not unsigned else key
    return bits ^ unsigned(top) if dtype.signed else bits


class _Ranking:
    """The ranks of a block's items by their digits. memories: of counters, and of the scan."""

    def __init__(self, cls: Any, storage: Any) -> None:
        self._thread, self._threads = cls.thread(), cls.block_threads
        self._counters = cls.memory(storage, "counters")
        self._scan_memory = cls._held(storage).scan
        self.most_bits = most_pass_bits(cls.block_threads)

    def ranks(self, digits: list[Any], bits: int, descending: bool = False) -> list[Any]:
        """The place of each item in the order of a digit of at most `most_bits` bits; equal ones keep their order."""
        bins, threads, thread = 1 << bits, self._threads, self._thread
        numbers = [Int32(bins - 1) - Int32(digit) if descending else Int32(digit) for digit in digits]
        for digit in range(bins):
            self._counters[thread + digit * threads] = 0
        own = []
        for number in numbers:  # each thread counts in a column of its own
            place = number * threads + thread
            before = self._counters[place]
            self._counters[place] = before + 1
            own.append(before)
        barrier()
        mine = [self._counters[thread * bins + i] for i in range(bins)]
        scan: Any = BlockScan.__class_getitem__((Int32, self._threads))
        starts = scan.exclusive(Vector.from_elements(mine, Int32), "add", self._scan_memory)
        barrier()
        for i in range(bins):
            self._counters[thread * bins + i] = starts[i]
        barrier()
        ranks = [
            self._counters[number * threads + thread] + before for number, before in zip(numbers, own, strict=True)
        ]
        barrier()
        return ranks


def most_pass_bits(threads: int) -> int:
    """The bits of a digit whose counters fit."""
    return max(1, min(_MOST_PASS_BITS, (_MOST_COUNTERS // threads).bit_length() - 1))


class _RadixPrimitive(BlockPrimitive):
    """Memory for counting digits and moving items."""

    has_items = True

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        return {
            "words": array_of(Uint32, cls.tile_size()),
            "counters": array_of(Int32, cls.block_threads << most_pass_bits(cls.block_threads)),
            "scan": scan_memory(Int32, cls.block_threads),
        }

    @classmethod
    def _held(cls, storage: Any) -> Any:
        return storage.peek() if hasattr(storage, "peek") else storage

    @classmethod
    def move(cls, items: list[Any], ranks: list[Any], places: list[Any], storage: Any) -> list[Any]:
        """The items at `places`, once those of all threads are at their ranks. They go by words of 32 bits."""
        words = cls.memory(storage, "words")
        dtype = items[0].dtype
        if dtype is Boolean or dtype.width < Uint32.width:
            narrow = None if dtype is Boolean else _UNSIGNED[dtype.width]
            bits = [i.select(Uint32(1), Uint32(0)) if narrow is None else i.bitcast(narrow).to(Uint32) for i in items]
            (moved,) = cls._moved_words([bits], ranks, places, words)
            return [w != 0 if narrow is None else w.to(narrow).bitcast(dtype) for w in moved]
        if dtype.width == Uint32.width:
            (moved,) = cls._moved_words([[item.bitcast(Uint32) for item in items]], ranks, places, words)
            return [word.bitcast(dtype) for word in moved]
        wide = [item.bitcast(Uint64) for item in items]
        halves = [[Uint32(item) for item in wide], [Uint32(item >> Uint64(32)) for item in wide]]
        low, high = cls._moved_words(halves, ranks, places, words)
        return [(Uint64(a) | Uint64(b) << Uint64(32)).bitcast(dtype) for a, b in zip(low, high, strict=True)]

    @classmethod
    def _moved_words(
        cls, columns: list[list[Any]], ranks: list[Any], places: list[Any], words: Slots
    ) -> list[list[Any]]:
        made = []
        for column in columns:
            made.append(through(words, column, ranks, places, None))
            barrier()
        return made


class BlockRadixSortAlgorithm(Enum):
    """The bits of a pass where `radix_bits` does not say: one, or as many as there is memory for, at most four."""

    RADIX_SCAN = "radix_scan"
    RADIX_DIGIT = "radix_digit"
    RadixScan = RADIX_SCAN
    RadixDigit = RADIX_DIGIT


class BlockRadixSort(_RadixPrimitive):
    """`BlockRadixSort[dtype, threads, items](keys, storage=memory)`: a block's keys in order, by their bits.

    `[(key, value), ...]` takes values along. Equal keys keep their order; both zeros of floats are equal. descending:
    the largest first. begin_bit, end_bit: the bits that count, from the lowest. decomposer: of a key, the numbers to
    sort by, the most significant first. radix_bits: of a pass. blocked_to_striped: whether the result lies striped.
    """

    algorithms = BlockRadixSortAlgorithm
    has_pairs = True

    def __new__(cls, keys: Any, values: Any = None, **options: Any) -> Any:
        return cls.sort(keys, values, **options)

    @classmethod
    def sort_blocked_to_striped(cls, keys: Any, values: Any = None, **options: Any) -> Any:
        """The keys in order, striped."""
        return cls.sort(keys, values, blocked_to_striped=True, **options)

    @classmethod
    def sort_descending(cls, keys: Any, values: Any = None, **options: Any) -> Any:
        """The keys in order, the largest first."""
        return cls.sort(keys, values, descending=True, **options)

    @classmethod
    def sort_descending_blocked_to_striped(cls, keys: Any, values: Any = None, **options: Any) -> Any:
        """The keys in order, the largest first, striped."""
        return cls.sort(keys, values, descending=True, blocked_to_striped=True, **options)

    @classmethod
    def sort(
        cls,
        keys: Any,
        values: Any = None,
        *,
        storage: Any,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        decomposer: Callable[[Any], Any] | None = None,
        radix_bits: int | None = None,
        blocked_to_striped: bool = False,
    ) -> Any:
        """The keys in order, with their values if there are any."""
        columns, ranking = columns_of(cls, keys, values), _Ranking(cls, storage)
        thread = cls.thread()
        blocked = cls.blocked(thread)
        default = 1 if cls.algorithm is BlockRadixSortAlgorithm.RADIX_SCAN else ranking.most_bits
        step = min(ranking.most_bits, default if radix_bits is None else _checked_bits(radix_bits))
        fields = [_fields_of(key, decomposer) for key in columns[0]]
        for number, first, bits in _passes([part.dtype.width for part in fields[0]], begin_bit, end_bit, step):
            digits = [_digit(parts[number], first, bits) for parts in fields]
            ranks = ranking.ranks(digits, bits, descending)
            columns = [cls.move(column, ranks, blocked, storage) for column in columns]
            fields = [_fields_of(key, decomposer) for key in columns[0]]
        if blocked_to_striped:
            columns = [cls.move(column, blocked, cls.striped(thread), storage) for column in columns]
        made = like(keys, columns[0], cls.dtype)
        return made if values is None else (made, like(values, columns[1], cls.value_dtype))  # type: ignore[arg-type]


def _checked_bits(bits: Any) -> int:
    if type(bits) is not int or not 1 <= bits <= 30:
        raise argument_error(f"radix_bits must be 1 to 30, got {bits!r}", "pass 4, or omit it")
    return bits


def _fields_of(key: Any, decomposer: Callable[[Any], Any] | None) -> list[Any]:
    """The numbers to sort a key by, as unsigned integers of the same order, the least significant first."""
    if decomposer is None:
        return [ordered_bits(key)]
    parts = decomposer(key)
    return [ordered_bits(part) for part in reversed(parts if isinstance(parts, tuple | list) else [parts])]


def _passes(widths: list[int], begin: int, end: int | None, step: int) -> list[tuple[int, int, int]]:
    """The digits of fields from bit `begin` to bit `end` of all: (field, its first bit, bits)."""
    total = sum(widths)
    last = total if end is None else end
    if not (type(begin) is int and type(last) is int and 0 <= begin <= last <= total):
        raise argument_error(f"bits {begin} to {last} of {total}", f"0 <= begin_bit <= end_bit <= {total}")
    found, offset = [], 0
    for number, width in enumerate(widths):
        at = max(begin - offset, 0)
        while at < min(last - offset, width):
            bits = min(step, min(last - offset, width) - at)
            found.append((number, at, bits))
            at += bits
        offset += width
    return found


def _digit(word: Any, first: int, bits: int) -> Any:
    kind = word.dtype
    return Int32((word >> kind(first)) & kind((1 << bits) - 1))


class BlockRadixRankAlgorithm(Enum):
    """Ways to rank keys: blocked (BASIC, MEMOIZE), or striped within the part of each wave (the others)."""

    BASIC = "basic"
    MEMOIZE = "memoize"
    MATCH = "match"
    MATCH_EARLY_COUNTS_ANY = "match_early_counts_any"
    MATCH_EARLY_COUNTS_ATOMIC_OR = "match_early_counts_atomic_or"
    EARLY_COUNTS = MATCH_EARLY_COUNTS_ANY
    Basic = BASIC
    Memoize = MEMOIZE
    Match = MATCH
    MatchEarlyCountsAny = MATCH_EARLY_COUNTS_ANY  # noqa: PIE796
    MatchEarlyCountsAtomicOr = MATCH_EARLY_COUNTS_ATOMIC_OR
    EarlyCounts = MATCH_EARLY_COUNTS_ANY  # noqa: PIE796


class BlockRadixRank(_RadixPrimitive):
    """`BlockRadixRank[dtype, threads, items](keys, storage=memory)`: the place of each key in the order of its bits.

    Keys are integers, whose bits count without a sign; or digit_extractor gives a digit of radix_bits bits of a key.
    begin_bit, end_bit: the bits that count. Equal digits keep the keys' order, also if descending. with_prefix: the
    number of keys before each digit, too, those of consecutive digits in each thread; count_callback, of MATCH, is
    called with how many keys have each. Both are for at most `configured_radix_bits` bits.
    """

    algorithms = BlockRadixRankAlgorithm
    configured_radix_bits: ClassVar[int] = 8

    @classmethod
    def with_radix_bits(cls, radix_bits: int) -> Any:
        """The same for digits of up to `radix_bits` bits."""
        return type(cls.__name__, (cls,), {"configured_radix_bits": _checked_bits(radix_bits)})

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        return super()._fields() | {"digits": array_of(Int32, cls._bins_per_thread() * cls.block_threads)}

    @classmethod
    def _bins_per_thread(cls, bits: int | None = None) -> int:
        return -(-(1 << (cls.configured_radix_bits if bits is None else bits)) // cls.block_threads)

    def __new__(cls, keys: Any, **options: Any) -> Any:
        return cls.rank(keys, **options)

    @classmethod
    def rank(
        cls,
        keys: Any,
        *,
        storage: Any,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        digit_extractor: Callable[[Any], Any] | None = None,
        radix_bits: int | None = None,
        count_callback: Callable[[Any], Any] | None = None,
        with_prefix: bool = False,
    ) -> Any:
        """The ranks, Int32; with_prefix: and the numbers of keys before digits."""
        items = cls.items_of("keys", keys, cls.dtype, cls.items_per_thread)
        words, bits = cls._words(items, begin_bit, end_bit, digit_extractor, radix_bits)
        counted = with_prefix or count_callback is not None
        if counted and bits > cls.configured_radix_bits:
            raise argument_error(
                f"{bits} bits with counts of digits, where there is memory for {cls.configured_radix_bits}",
                f"BlockRadixRank.with_radix_bits({bits})[...], or a range of fewer bits",
            )
        is_striped = "match" in cls.algorithm.value
        if count_callback is not None and not is_striped:
            raise argument_error("count_callback= is for MATCH", "take BlockRadixRankAlgorithm.MATCH")
        thread, ranking = cls.thread(), _Ranking(cls, storage)
        blocked = cls.blocked(thread)
        places = cls.warp_striped(thread) if is_striped else blocked
        moved = cls.move(words, places, blocked, storage) if is_striped else words
        origin = blocked
        for first in range(0, bits, ranking.most_bits):
            step = min(ranking.most_bits, bits - first)
            ranks = ranking.ranks([_digit(word, first, step) for word in moved], step, descending)
            moved, origin = (cls.move(column, ranks, blocked, storage) for column in (moved, origin))
        # Place p of the order holds the item that came from place `origin`: the inverse is its rank.
        ranks = cls.move(blocked, origin, places, storage)
        made = like(keys, ranks, Int32)
        if not counted:
            return made
        starts, counts = cls._digits(words, bits, descending, storage)
        if count_callback is not None:
            count_callback(counts)
        return (made, starts) if with_prefix else made

    @classmethod
    def _words(
        cls, items: list[Any], begin: int, end: int | None, extractor: Callable[[Any], Any] | None, bits: int | None
    ) -> tuple[list[Any], int]:
        """The unsigned integers that keys are ranked by, and the number of their bits that count."""
        if extractor is not None:
            if bits is None or (end is not None and end != begin + bits):
                raise argument_error("digit_extractor= without the bits of a digit", "pass radix_bits=4, for example")
            return [Uint32(extractor(item)) for item in items], _checked_bits(bits)
        if cls.dtype.is_float or cls.dtype.width not in _UNSIGNED:
            raise argument_error(f"ranks of {cls.dtype.__name__}", "rank integers, or pass a digit_extractor")
        last = end if end is not None else cls.dtype.width if bits is None else begin + bits
        if not 0 <= begin <= last <= cls.dtype.width:
            raise argument_error(f"bits {begin} to {last} of {cls.dtype.width}", "0 <= begin_bit <= end_bit <= width")
        unsigned: Any = _UNSIGNED[cls.dtype.width]
        mask = unsigned((1 << (last - begin)) - 1)
        if begin == cls.dtype.width:
            return [Uint32(0) for _ in items], 0
        return [(item.bitcast(unsigned) >> unsigned(begin)) & mask for item in items], last - begin

    @classmethod
    def _digits(cls, words: list[Any], bits: int, descending: bool, storage: Any) -> tuple[Any, Any]:
        """For a thread's consecutive digits: how many keys come before each, and have it."""
        bins, share, thread = 1 << bits, cls._bins_per_thread(bits), cls.thread()
        slots, pointer = cls.memory(storage, "digits"), cls._held(storage).digits.ptr
        for i in range(share):
            slots[thread * share + i] = 0
        barrier()
        for word in words:
            digit = Int32(word)
            atomic_add(pointer + (Int32(bins - 1) - digit if descending else digit), Int32(1), syncscope="workgroup")
        barrier()
        own = Vector.from_elements([slots[thread * share + i] for i in range(share)], Int32)
        scan: Any = BlockScan.__class_getitem__((Int32, cls.block_threads))
        starts = scan.exclusive(own, "add", cls._held(storage).scan)
        barrier()
        return starts, own
