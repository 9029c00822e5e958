"""Random numbers on the device: `fx.random`.

    u = fx.random.rand(seed, offset)

A number depends on its seed and offset only, so a thread that draws at an offset of its own needs no state, and every
launch draws the same again. The generator is Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
easy as 1, 2, 3", SC 2011); its words and what is made of them are those of Triton's `tl.rand` and its like.

seed, offset: integers, of Python or of run time, of up to 64 bits. n_rounds: of Philox, known at compile time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flydsl.expr.math import cos, isnan, log, sin, sqrt
from flydsl.expr.numbers.operators import max
from flydsl.expr.numeric import BFloat16, Float32, Int32, Uint16, Uint32, Uint64

if TYPE_CHECKING:
    from flydsl.expr.kinds import Number

__all__ = ["cvt_f32_to_bf16_sr", "philox_4x32", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x"]

_ROUNDS = 10
# What a round multiplies words 0 and 2 by, and what it adds to both words of the key (Salmon et al., table 2).
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_TO_UNIT = 4.6566127342e-10  # a little less than 2 ** -31, so that the largest word stays below 1 when it is rounded
_LEAST = 1e-7  # what a logarithm is taken of, at least
_TURN = 6.283185307179586


def randint4x(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> tuple[Uint32, Uint32, Uint32, Uint32]:
    """Four words of 32 random bits."""
    keys, counter = _halves(seed), (*_halves(offset), Uint32(0), Uint32(0))
    for _ in range(n_rounds):
        (low0, high0), (low2, high2) = (
            _halves(Uint64(counter[2 * i]) * Uint64(by)) for i, by in enumerate(_MULTIPLIERS)
        )
        counter = (high2 ^ counter[1] ^ keys[0], low2, high0 ^ counter[3] ^ keys[1], low0)
        keys = (Uint32(keys[0] + Uint32(_WEYL[0])), Uint32(keys[1] + Uint32(_WEYL[1])))
    return counter


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
    a, b, c, d = (_uniform(word) for word in randint4x(seed, offset, n_rounds))
    return a, b, c, d


def rand(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> Float32:
    """A number, evenly distributed from 0 up to but not including 1: the first of `rand4x`."""
    return _uniform(randint(seed, offset, n_rounds))


def randn4x(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> tuple[Float32, Float32, Float32, Float32]:
    """Four numbers, normally distributed with mean 0 and variance 1."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    return *_normal(a, b), *_normal(c, d)


def randn(seed: Number, offset: Number, n_rounds: int = _ROUNDS) -> Float32:
    """A number, normally distributed with mean 0 and variance 1: the first of `randn4x`."""
    return randn4x(seed, offset, n_rounds)[0]


def _halves(value: Number) -> tuple[Uint32, Uint32]:
    """The low and the high 32 bits of an integer."""
    wide = Uint64(value)
    return Uint32(wide), Uint32(wide >> Uint64(32))


def _uniform(word: Uint32) -> Float32:
    """A word as a number from 0 up to 1: 31 of its bits, as those of -1 - n are those of n, inverted."""
    signed = Int32(word)
    return Float32((signed < 0).select(-signed - 1, signed)) * Float32(_TO_UNIT)


def _normal(u: Float32, v: Float32) -> tuple[Float32, Float32]:
    """Two normally distributed numbers made of two evenly distributed ones (Box and Muller)."""
    radius, angle = sqrt(Float32(-2.0) * log(max(u, Float32(_LEAST)))), Float32(_TURN) * v
    return radius * cos(angle), radius * sin(angle)
