"""The order of the calls of a product, by FlyDSL's names: the innermost mode comes first.

In a serpentine order each loop turns around each time, so that a call shares two of its operands with the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

TRAVERSAL_ORDERS = tuple(
    order + turning for turning in ("", "_SERPENTINE") for order in ("KMN", "KNM", "MKN", "MNK", "NKM", "NMK")
)
DEFAULT_ORDER = "NMK"


def traversal(extents: tuple[int, int, int], order: str = DEFAULT_ORDER) -> Iterator[tuple[int, int, int]]:
    """The calls (m, n, k) of a product. extents: the numbers of calls along M, N and K.

    >>> list(traversal((2, 2, 1), "MNK")), list(traversal((2, 2, 1), "MNK_SERPENTINE"))
    ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)])
    """
    loops, _, turning = order.partition("_")
    modes = ["MNK".index(mode) for mode in reversed(loops)]
    for place in product(*(range(extents[mode]) for mode in modes)):
        at, turns = [0, 0, 0], 0
        for mode, index in zip(modes, place, strict=True):
            at[mode] = extents[mode] - 1 - index if turning and turns % 2 else index
            turns = turns * extents[mode] + index
        yield at[0], at[1], at[2]
