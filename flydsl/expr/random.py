"""Random numbers on the device: `fx.random`.

    u = fx.random.rand(seed, offset)

A number depends on its seed and offset only, so a thread that draws at an offset of its own needs no state, and every
launch draws the same again. The generator is Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
easy as 1, 2, 3", SC 2011); its words and what is made of them are those of Triton's `tl.rand` and its like.

seed, offset: integers, of Python or of run time, of up to 64 bits. n_rounds: of Philox, known at compile time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flydsl.dialect.location import argument_error
from flydsl.expr.math import cos, isnan, log, sin, sqrt
from flydsl.expr.numbers.operators import max
from flydsl.expr.numeric import BFloat16, Float32, Int32, Int64, Uint16, Uint32, Uint64, Uint128, as_numeric

if TYPE_CHECKING:
    from flydsl.expr.kinds import Number

__all__ = [
    "cvt_f32_to_bf16_sr",
    "pair_uniform_to_normal",
    "philox",
    "philox_4x32",
    "philox_impl",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "uint_to_uniform_float",
]  # fmt: skip

_ROUNDS = 10
# By the bits of a word: what a round multiplies words 0 and 2 by, and what it adds to both words of the key (Salmon et
# al., table 2).
_MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
_WEYL = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
_TO_UNIT = 4.6566127342e-10  # a little less than 2 ** -31, so that the largest word stays below 1 when it is rounded
_WIDE_TO_UNIT = 1.0842020432385337e-19
_LEAST = 1e-7  # what a logarithm is taken of, at least
_TURN = 6.283185307179586


def philox(
    seed: Number, c0: Number, c1: Number, c2: Number, c3: Number, n_rounds: int = _ROUNDS
) -> tuple[Any, Any, Any, Any]:
    """Four random words of a counter of four: Philox 4x32, or 4x64 where the counter's first word has 64 bits.

    seed: the key, of 64 bits; of Philox 4x64 its other word is 0.

    >>> [hex(int(word)) for word in philox(0, Uint64(0), 0, 0, 0)][:2]
    ['0x16554d9eca36314c', '0xdb20fe9d672d0fdc']
    """
    low, high = (Uint64(seed), Uint64(0)) if _word_bits(c0) == 64 else _halves(seed)
    return philox_impl(c0, c1, c2, c3, low, high, n_rounds)


def philox_impl(
    c0: Number, c1: Number, c2: Number, c3: Number, k0: Number, k1: Number, n_rounds: int = _ROUNDS
) -> tuple[Any, Any, Any, Any]:
    """`philox` with both words of the key."""
    bits = _word_bits(c0)
    word, wide = (Uint32, Uint64) if bits == 32 else (Uint64, Uint128)
    counter: Any = tuple(word(part) for part in (c0, c1, c2, c3))
    keys: Any = word(k0), word(k1)
    for _ in range(n_rounds):
        products = [wide(counter[2 * i]) * wide(by) for i, by in enumerate(_MULTIPLIERS[bits])]
        (low0, high0), (low2, high2) = ((word(product), word(product >> wide(bits))) for product in products)
        counter = (high2 ^ counter[1] ^ keys[0], low2, high0 ^ counter[3] ^ keys[1], low0)
        keys = tuple(word(key + word(step)) for key, step in zip(keys, _WEYL[bits], strict=True))
    first, second, third, fourth = counter
    return first, second, third, fourth


def _word_bits(word: Number) -> int:
    bits = as_numeric(word).dtype.width
    if bits not in (32, 64) or as_numeric(word).dtype.is_float:
        raise argument_error(f"Philox of words of {as_numeric(word).dtype.__name__}", "pass fx.Uint32 or fx.Uint64")
    return bits


def randint4x(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> tuple[Uint32, Uint32, Uint32, Uint32]:
    """Four words of 32 random bits."""
    return philox(seed, *_halves(offset), Uint32(0), Uint32(0), n_rounds)


def philox_4x32(counter: Number, key: Number, rounds: int = _ROUNDS) -> tuple[Uint32, Uint32, Uint32, Uint32]:
    """Four words of 32 random bits, by FlyDSL's name: `randint4x` of a seed and an offset of 32 bits each.

    >>> [hex(int(word)) for word in philox_4x32(0, 0)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    return randint4x(Uint32(key), Uint32(counter), rounds)


def cvt_f32_to_bf16_sr(x: Number, rand: Number) -> BFloat16:
    """A Float32 rounded to one of the two BFloat16 around it, so that the mean over many `rand` is the number.

    rand: a word of `randint`; its lower 16 bits count. Values that BFloat16 can hold stay as they are.
    """
    exact = Float32(x)
    rounded = Uint16((exact.bitcast(Uint32) + (Uint32(rand) & Uint32(0xFFFF))) >> Uint32(16)).bitcast(BFloat16)
    return isnan(exact).select(exact.to(BFloat16), rounded)


def randint(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> Uint32:
    """32 random bits: the first of `randint4x`."""
    return randint4x(seed, offset, n_rounds)[0]


def rand4x(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> tuple[Float32, Float32, Float32, Float32]:
    """Four numbers, evenly distributed from 0 up to but not including 1."""
    a, b, c, d = (uint_to_uniform_float(word) for word in randint4x(seed, offset, n_rounds))
    return a, b, c, d


def rand(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> Float32:
    """A number, evenly distributed from 0 up to but not including 1: the first of `rand4x`."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def randn4x(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> tuple[Float32, Float32, Float32, Float32]:
    """Four numbers, normally distributed with mean 0 and variance 1."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    return *pair_uniform_to_normal(a, b), *pair_uniform_to_normal(c, d)


def randn(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> Float32:
    """A number, normally distributed with mean 0 and variance 1: the first of `randn4x`."""
    return randn4x(seed, offset, n_rounds)[0]


def _halves(value: Number) -> tuple[Uint32, Uint32]:
    """The low and the high 32 bits of an integer."""
    wide = Uint64(value)
    return Uint32(wide), Uint32(wide >> Uint64(32))


def uint_to_uniform_float(word: Number) -> Float32:
    """A word of 32 or 64 bits as a number from 0 up to 1, by all bits but one: -1 - n has those of n, inverted."""
    signed = Int32(word) if _word_bits(word) == 32 else Int64(word)
    zero, one = signed.dtype(0), signed.dtype(1)
    scale = _TO_UNIT if signed.dtype is Int32 else _WIDE_TO_UNIT
    return Float32((signed < zero).select(-signed - one, signed)) * Float32(scale)


def pair_uniform_to_normal(u: Float32, v: Float32) -> tuple[Float32, Float32]:
    """Two normally distributed numbers made of two evenly distributed ones (Box and Muller)."""
    radius, angle = sqrt(Float32(-2.0) * log(max(u, Float32(_LEAST)))), Float32(_TURN) * v
    return radius * cos(angle), radius * sin(angle)
