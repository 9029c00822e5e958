"""The k largest or smallest of a block's keys."""

from __future__ import annotations

from enum import Enum
from typing import Any

from flydsl.dialect.location import argument_error
from flydsl.expr.coop.block_reductions import BlockScan
from flydsl.expr.coop.primitive import array_of, like
from flydsl.expr.coop.radix import _digit, _RadixPrimitive, _Ranking, ordered_bits
from flydsl.expr.coop.sorting import Compare, columns_of, merge_sorted, precedes
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Int32


class BlockTopKAlgorithm(Enum):
    """MERGE sorts, so the keys come in order; AIR ranks them by their bits, and they come in the order of the input."""

    MERGE = "merge"
    AIR = "air"
    Merge = MERGE
    Air = AIR


class BlockTopK(_RadixPrimitive):
    """`BlockTopK[dtype, threads, items, algorithm](keys, k, storage=memory)`: `(keys, valid)`, of which k are valid.

    `[(key, value), ...]` takes values along: `(keys, values, valid)`. Of equal keys the first are taken. largest: or
    the smallest. num_valid: how many of the block's keys count. compare_op: of MERGE, whether its first key is smaller.
    """

    algorithms = BlockTopKAlgorithm
    has_pairs = True

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        if cls.algorithm is BlockTopKAlgorithm.AIR:
            return super()._fields()
        keys = {"keys": array_of(cls.dtype, cls.tile_size())}
        return keys if cls.value_dtype is None else keys | {"values": array_of(cls.value_dtype, cls.tile_size())}

    def __new__(
        cls,
        keys: Any,
        k: Any,
        values: Any = None,
        *,
        storage: Any,
        largest: bool = True,
        num_valid: Any = None,
        compare_op: Compare | None = None,
    ) -> Any:
        columns, thread = columns_of(cls, keys, values), cls.thread()
        places = cls.blocked(thread)
        if cls.algorithm is BlockTopKAlgorithm.MERGE:
            memories = [cls.memory(storage, name) for name in cls._fields()]
            before = precedes(compare_op, descending=largest)
            columns = merge_sorted(columns, memories, thread, cls.block_threads, before, num_valid)
        elif compare_op is not None:
            raise argument_error(
                "compare_op= with AIR, which goes by the bits of keys", "take BlockTopKAlgorithm.MERGE"
            )
        else:
            columns = cls._selected(columns, places, k, largest, num_valid, storage)
        taken = like(keys, [place < k for place in places], Boolean)
        made = like(keys, columns[0], cls.dtype)
        if values is None:
            return made, taken
        return made, like(values, columns[1], cls.value_dtype), taken  # type: ignore[arg-type]

    @classmethod
    def max_keys(cls, keys: Any, k: Any, num_valid: Any = None, *, storage: Any) -> Any:
        """The k largest."""
        return cls(keys, k, storage=storage, num_valid=num_valid)

    @classmethod
    def min_keys(cls, keys: Any, k: Any, num_valid: Any = None, *, storage: Any) -> Any:
        """The k smallest."""
        return cls(keys, k, storage=storage, largest=False, num_valid=num_valid)

    @classmethod
    def max_pairs(cls, keys: Any, values: Any, k: Any, num_valid: Any = None, *, storage: Any) -> Any:
        """The k largest, with their values."""
        return cls(keys, k, values, storage=storage, num_valid=num_valid)

    @classmethod
    def min_pairs(cls, keys: Any, values: Any, k: Any, num_valid: Any = None, *, storage: Any) -> Any:
        """The k smallest, with their values."""
        return cls(keys, k, values, storage=storage, largest=False, num_valid=num_valid)

    @classmethod
    def _selected(
        cls, columns: list[list[Any]], places: list[Any], k: Any, largest: bool, num_valid: Any, storage: Any
    ) -> list[list[Any]]:
        """The columns with the selected items first, in the order of the input."""
        ranking, words, origin = _Ranking(cls, storage), [ordered_bits(key) for key in columns[0]], places
        width = words[0].dtype.width
        for first in range(0, width, ranking.most_bits):
            bits = min(ranking.most_bits, width - first)
            ranks = ranking.ranks([_digit(word, first, bits) for word in words], bits, largest)
            words, origin = (cls.move(column, ranks, places, storage) for column in (words, origin))
        if num_valid is not None:
            ranks = ranking.ranks([(at < num_valid).select(Int32(0), Int32(1)) for at in origin], 1)
            origin = cls.move(origin, ranks, places, storage)
        ranks = cls.move(places, origin, places, storage)  # of each item, in its own place
        chosen = [(rank < k).select(Int32(1), Int32(0)) for rank in ranks]
        scan: Any = BlockScan.__class_getitem__((Int32, cls.block_threads))
        before = scan.exclusive(Vector.from_elements(chosen, Int32), "add", cls._held(storage).scan)
        # What is left comes after the selected ones: as many as are before it, less those of them that are selected.
        targets = [
            (flag != 0).select(count, k + (place - count))
            for flag, count, place in zip(chosen, before, places, strict=True)
        ]
        return [cls.move(column, targets, places, storage) for column in columns]
