"""Memory that launches would have written, had they been carried out."""

from __future__ import annotations

import numpy as np

from flydsl.simulator import Memory
from flydsl.simulator.arrays import Array
from flydsl.simulator.memory.buffers import Buffer, address_of
from flydsl.simulator.timing.left_out import LeftOut


def test_zeros_stand_where_they_store_and_nowhere_else() -> None:
    """In memory of an argument, a view of the same memory, and memory at its address."""
    x, _, _, _, y = np.tile(np.arange(1, 9, dtype=np.int32), (5, 1))
    memory = Memory([Buffer(address_of(y), y.view(np.uint8), "y", 4, "y")])
    whole = memory.map_array(x, name="x")
    part = memory.map_array(x[3:], name="part")
    left_out = LeftOut()
    left_out.leave((address_of(x) + 8, address_of(x) + 16), (address_of(y) - 64, address_of(y) + 4))

    emptied = left_out.emptied(memory)
    found = [_array(emptied, address).tolist() for address in (whole, part, address_of(y))]
    assert found == [[1, 2, 0, 0, 5, 6, 7, 8], [0, 5, 6, 7, 8], [0, 2, 3, 4, 5, 6, 7, 8]]
    assert x.tolist() == y.tolist() == list(range(1, 9))

    _array(emptied, whole)[4] = 50
    assert _array(emptied, part)[1] == 50, "a view of the same memory still is one"


def test_without_launches_that_were_left_out_it_is_a_copy() -> None:
    x = np.arange(4, dtype=np.int32)
    memory = Memory()
    address = memory.map_array(x, name="x")
    assert _array(LeftOut().emptied(memory), address).tolist() == [0, 1, 2, 3]
    assert not LeftOut().concerns(memory)


def _array(memory: Memory, address: int) -> Array:
    buffer = memory.buffer_at(address)
    assert buffer is not None
    return buffer.data.view(np.int32)
