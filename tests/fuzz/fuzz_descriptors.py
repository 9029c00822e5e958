"""Descriptors of the tensor data mover (gfx1250): tiles of any form, and with fields and bits that mean nothing.

Both backends do the same, or raise the same FlyError, in a few seconds and with the memory that there is. A tile whose
fields are as they should be is what a copy of one element after the other makes of it.
"""

from __future__ import annotations

import random
from dataclasses import replace

from flydsl.errors import FlyError
from flydsl.simulator import Memory
from flydsl.simulator.memory.tensor_descriptor import FIELDS
from tests.fuzz.launching import prepare
from tests.fuzz.workers import run_trials
from tests.simulator.conftest import run_instructions
from tests.simulator.isa.test_tensor import LDS_BYTES, Tile, loaded, patterns, stored

_START = 512
_EDGES = (0, 1, 2, 3, 255, 256, 4095, 65535, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 47, (1 << 48) - 1, (1 << 64) - 1)


def run(seed: int, count: int) -> None:
    """AssertionError with the trials that ended otherwise than they may."""
    run_trials(trial, seed, count, prepare)


def trial(random_: random.Random) -> None:
    tile = _any_tile(random_)
    is_load, groups = random_.random() < 0.6, 20 if _needs_all(tile) else random_.choice((12, 20))
    is_odd = random_.random() < 0.6
    data, lds = patterns()
    before, memory = bytes(data), Memory()
    words = tile.words(memory.map_array(data, name="A") + _START, groups)
    if is_odd:
        for _ in range(random_.choice((1, 1, 2, 5))):
            random_.choice((_other_field, _other_bit, _other_word))(words, random_)
    operands = ", ".join(("s[20:23]", "s[24:31]", "s[32:35]", "s[36:39]")[: 2 if groups == 12 else 4])
    text = f"{'tensor_load_to_lds' if is_load else 'tensor_store_from_lds'} {operands}"
    try:
        found = run_instructions(text, s=words, memory=memory, lds=lds, arch="gfx1250")
    except FlyError:
        return
    if is_odd:
        return
    if is_load:
        assert bytes(found.waves.lds[:LDS_BYTES]) == loaded(tile, before, _START, lds), f"{text} of {tile}"
    else:
        assert bytes(data) == stored(tile, before, _START, lds), f"{text} of {tile}"


def _needs_all(tile: Tile) -> bool:
    return len(tile.sizes) > 2 or tile.rows is not None or tile.iterate is not None


def _any_tile(random_: random.Random) -> Tile:
    """One whose rows do not overlap in memory."""
    dimensions = random_.choice((1, 2, 2, 2, 3, 4, 5))
    sizes = tuple(random_.randint(1, (40, 12, 4, 3, 2)[i]) for i in range(dimensions))
    strides, step = [], sizes[0]
    for size in sizes[1:]:
        step += random_.choice((0, 0, 1, 3))
        strides.append(step)
        step *= size
    extents = tuple(random_.choice((size, size, size + 3, random_.randint(0, size))) for size in sizes)
    tile = Tile(sizes, extents, tuple(strides), random_.choice((1, 2, 4, 8)), random_.randrange(0, 256, 4))
    if random_.random() < 0.3:
        tile = replace(tile, padding=(2 << random_.randrange(8), random_.randint(1, 128)))
    what = random_.random()
    if what < 0.2:
        bits = random_.choice((16, 32))
        rows = tuple(sorted(random_.sample(range(24), random_.randint(1, 256 // bits))))
        return replace(tile, sizes=sizes[:1], tensor=(extents[0], random_.randint(0, 24)), strides=(sizes[0] + 1,),
                       rows=rows, index_bits=bits)  # fmt: skip
    if what < 0.35 and dimensions <= 3:
        return replace(tile, iterate=(random_.randint(1, 4), step + random_.randrange(3), random_.randint(512, 700)))
    return tile


def _other_field(words: dict[int, int], random_: random.Random) -> None:
    """A field that is as large, or as small, as it can be."""
    first, bits = random_.choice(list(FIELDS.values()))
    value = random_.choice((*_EDGES, random_.getrandbits(bits))) & (1 << bits) - 1
    for bit in range(bits):
        _set_bit(words, first + bit, value >> bit & 1)


def _other_bit(words: dict[int, int], random_: random.Random) -> None:
    _set_bit(words, random_.randrange(32 * len(words)), random_.randrange(2))


def _other_word(words: dict[int, int], random_: random.Random) -> None:
    words[random_.choice(list(words))] = random_.getrandbits(32)


def _set_bit(words: dict[int, int], bit: int, value: int) -> None:
    register = 20 + bit // 32
    if register in words:
        words[register] = words[register] & ~(1 << bit % 32) | value << bit % 32
