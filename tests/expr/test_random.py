"""`fx.random` against Philox written with Python's integers."""

from __future__ import annotations

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of

N = 256
MASK = 2**32 - 1


def philox(seed: int, offset: int, rounds: int) -> list[int]:
    key, word = [seed & MASK, seed >> 32], [offset & MASK, offset >> 32, 0, 0]
    for _ in range(rounds):
        a, b = word[0] * 0xD2511F53, word[2] * 0xCD9E8D57
        word = [b >> 32 ^ word[1] ^ key[0], b & MASK, a >> 32 ^ word[3] ^ key[1], a & MASK]
        key = [key[0] + 0x9E3779B9 & MASK, key[1] + 0xBB67AE85 & MASK]
    return word


@flyc.kernel
def wide_kernel(words: fx.Tensor, floats: fx.Tensor, seed: fx.Int64, start: fx.Uint64):
    lane = fx.thread_idx.x
    for i, word in enumerate(fx.random.philox(seed, start + fx.Uint64(lane), 1, 2, 3)):
        words[lane, i] = fx.Int64(word)
        floats[lane, i] = fx.random.uint_to_uniform_float(word)


def test_words_of_64_bits() -> None:
    """Philox 4x64, against Python's integers, on the device and while tracing."""
    mask, seed, start = 2**64 - 1, 0x123456789ABCDEF0, 2**64 - 3
    words, floats = torch.zeros(8, 4, dtype=torch.int64), torch.zeros(8, 4)
    launcher_of(wide_kernel, grid=1, block=8)(words, floats, seed, start)
    for lane in range(8):
        key, word = [seed, 0], [start + lane & mask, 1, 2, 3]
        known = fx.random.philox(seed, fx.Uint64(word[0]), 1, 2, 3)
        for _ in range(10):
            a, b = word[0] * 0xD2E7470EE14C6C93, word[2] * 0xCA5A826395121157
            word = [b >> 64 ^ word[1] ^ key[0], b & mask, a >> 64 ^ word[3] ^ key[1], a & mask]
            key = [key[0] + 0x9E3779B97F4A7C15 & mask, key[1] + 0xBB67AE8584CAA73B & mask]
        assert [int(w) & mask for w in words[lane]] == word == [int(w) for w in known]
    folded = torch.where(words < 0, -words - 1, words).double() / 2**63
    assert torch.allclose(floats.double(), folded, rtol=1e-6, atol=0)
    assert ((floats >= 0) & (floats < 1)).all()


@flyc.kernel
def draws_kernel(words: fx.Tensor, floats: fx.Tensor, seed: fx.Int64, start: fx.Int64):
    lane = fx.thread_idx.x
    offset = start + lane
    for i, word in enumerate(fx.random.randint4x(seed, offset)):
        words[lane, i] = word.to(fx.Int64)
    words[lane, 4] = fx.random.randint(7, lane, n_rounds=3).to(fx.Int64)
    floats[lane, 0], floats[lane, 1] = fx.random.rand(seed, offset), fx.random.randn(seed, offset)
    floats[lane, 2], floats[lane, 3] = fx.random.rand4x(seed, offset)[3], fx.random.randn4x(seed, offset)[3]


draws = launcher_of(draws_kernel, grid=1, block=N)


def test_words_and_what_is_made_of_them() -> None:
    seed, start = 0x123456789ABCDEF0, 2**32 - 100
    words, floats = torch.zeros(N, 5, dtype=torch.int64), torch.zeros(N, 4)
    draws(words, floats, seed, start)
    assert words[:, :4].tolist() == [philox(seed, start + i, 10) for i in range(N)]
    assert words[:, 4].tolist() == [philox(7, i, 3)[0] for i in range(N)]

    folded = torch.where(words[:, :4] < 2**31, words[:, :4], MASK - words[:, :4])
    uniform = folded.double() / 2**31
    assert torch.allclose(floats[:, [0, 2]].double(), uniform[:, [0, 3]], atol=1e-7)
    assert float(floats[:, 0].min()) >= 0
    assert float(floats[:, 0].max()) < 1
    radius = torch.sqrt(-2 * uniform[:, [0, 2]].clamp(min=1e-7).log())
    angle = 2 * torch.pi * uniform[:, [1, 3]]
    normal = torch.stack([radius[:, 0] * angle[:, 0].cos(), radius[:, 1] * angle[:, 1].sin()], 1)
    assert torch.allclose(floats[:, [1, 3]].double(), normal, atol=1e-4)


def test_the_published_vector() -> None:
    """Random123's known answers for Philox 4x32-10: all of the counter and the key 0."""
    words, floats = torch.zeros(N, 5, dtype=torch.int64), torch.zeros(N, 4)
    draws(words, floats, 0, 0)
    assert words[0, :4].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@flyc.kernel
def rounds_kernel(given: fx.Tensor, rounded: fx.Tensor, words: fx.Tensor):
    lane = fx.thread_idx.x
    words[lane] = fx.random.philox_4x32(lane, 9, rounds=7)[0].to(fx.Int64)
    rounded[lane] = fx.random.cvt_f32_to_bf16_sr(given[lane], lane << 8)


def test_rounding_by_chance() -> None:
    given = torch.full((N,), 1 + 2**-9)  # a quarter of the way from 1 to the next number
    given[:6] = torch.tensor([0.0, float("inf"), -float("inf"), float("nan"), -0.0, -2.5])
    given[4:N:64] = torch.tensor(2**31 - 1, dtype=torch.int32).view(torch.float32)  # a NaN of all ones
    rounded, words = torch.zeros(N, dtype=torch.bfloat16), torch.zeros(N, dtype=torch.int64)
    launcher_of(rounds_kernel, grid=1, block=N)(given, rounded, words)
    assert words.tolist() == [philox(9, i, 7)[0] for i in range(N)]
    up = given.view(torch.int32) + (torch.arange(N, dtype=torch.int32) << 8) >> 16
    expected = torch.where(given.isnan(), given, (up << 16).view(torch.float32))
    assert torch.equal(rounded.float().nan_to_num(7.0), expected.nan_to_num(7.0))
    assert int((rounded == 1.0078125).sum()) == 63
