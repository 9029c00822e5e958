"""Tensors of elements below a byte: in registers, in memory, and multiplied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError
from tests.launchers import launcher_of

M, N, K = 32, 16, 256
VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
FLOAT4 = torch.cat([VALUES, -VALUES])


@pytest.fixture(autouse=True, params=["compiled", "interpreted"])
def _gfx950(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    with flydsl.interpreting() if request.param == "interpreted" else nullcontext():
        yield


def example(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes of f4E2M1FN, two in a byte, and their values."""
    torch.manual_seed(0)
    codes = torch.randint(0, 16, shape)
    return (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8), FLOAT4[codes]


def view(tensor: Any, rows: int, *, buffer: bool = False) -> Any:
    pointer = fx.get_iter(fx.rocdl.make_buffer_tensor(tensor) if buffer else tensor)
    return fx.make_view(fx.recast_iter(fx.Float4E2M1FN, pointer), fx.make_layout((rows, K), (K, 1)))


@pytest.mark.parametrize("buffer", [False, True])
def test_fragments_are_copied_and_multiplied(buffer: bool) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float4E2M1FN)))
        part = mma.get_slice(fx.thread_idx.x)
        op = fx.rocdl.BufferCopy128b() if buffer else fx.UniversalCopy128b()
        copy = fx.make_copy_atom(op, fx.Float4E2M1FN)
        a, b = view(A, M, buffer=buffer), view(B, N, buffer=buffer)
        of_a, of_b = part.make_fragment_A(a), part.make_fragment_B(b)
        fx.copy(copy, part.partition_A(a), of_a)
        fx.copy(copy, part.partition_B(b), of_b)
        out = part.partition_C(fx.make_view(fx.get_iter(C), fx.make_layout((M, N), (N, 1))))
        held = fx.make_fragment_like(out)
        held.fill(0.0)
        fx.gemm(mma, held, of_a, of_b, held, scale_a=127, scale_b=127)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), held, out)

    (a, a_values), (b, b_values) = example(M, K), example(N, K)
    c = torch.zeros(M, N)
    launcher_of(kernel, grid=1, block=64)(a, b, c)
    torch.testing.assert_close(c, a_values @ b_values.T)


def test_words_are_stored_into_fragments() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        lane = fx.thread_idx.x
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float4E2M1FN)))
        shape = fx.make_view(fx.recast_iter(fx.Float4E2M1FN, fx.get_iter(A)), fx.make_layout((16, 128), (128, 1)))
        fragments = mma.make_fragment_A(shape), mma.make_fragment_B(shape)
        for tensor, fragment in zip((A, B), fragments, strict=True):
            words = [tensor[lane % 16, lane // 16 * 4 + i] for i in fx.range_constexpr(4)]
            fragment.store(fx.Vector.from_elements(words, fx.Int32).bitcast(fx.Float4E2M1FN))
        held = mma.make_fragment_C(fx.make_view(fx.get_iter(C), fx.make_layout((16, 16), (16, 1))))
        held.fill(0.0)
        fx.gemm(mma, held, *fragments, held, scale_a=127, scale_b=127)
        out = mma.get_slice(lane).partition_C(fx.make_view(fx.get_iter(C), fx.make_layout((16, 16), (16, 1))))
        fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), held, out)

    (a, a_values), (b, b_values) = example(16, 128), example(16, 128)
    c = torch.zeros(16, 16)
    launcher_of(kernel, grid=1, block=64)(a.view(torch.int32), b.view(torch.int32), c)
    torch.testing.assert_close(c, a_values @ b_values.T)


def test_copies_between_memories_and_values_as_numbers() -> None:
    """Each thread takes eight elements through shared memory, and doubles them."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        t = fx.thread_idx.x
        copy = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float4E2M1FN)
        source = fx.logical_divide(view(A, 2), (1, 8))
        shared = fx.make_view(fx.recast_iter(fx.Float4E2M1FN, fx.get_dyn_shared()), fx.make_layout((8, 64), (1, 8)))
        registers = fx.make_rmem_tensor(8, fx.Float4E2M1FN)
        fx.copy(copy, source[t // 32, (None, t % 32)], shared[None, t])
        fx.barrier()
        fx.copy(copy, shared[None, 63 - t], registers)
        doubled = registers.load().to(fx.Float32)
        for i in fx.range_constexpr(8):
            Out[63 - t, i] = doubled[i] * 2

    a, values = example(2, K)
    out = torch.zeros(64, 8)
    launcher_of(kernel, grid=1, block=64, smem=256)(a, out)
    assert torch.equal(out, 2 * values.reshape(64, 8))


def test_integers_of_four_bits_keep_their_sign() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        words = fx.make_view(fx.recast_iter(fx.Int4, fx.get_iter(A)), fx.make_layout(16, 1))
        registers = fx.make_rmem_tensor(16, fx.Int4)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Int4), words, registers)
        numbers = registers.load().to(fx.Int32)
        for i in fx.range_constexpr(16):
            Out[i] = numbers[i]

    a, out = torch.tensor([0x76543210, 0x7EDCBA98], dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    launcher_of(kernel, grid=1, block=1)(a, out)
    assert out.tolist() == [*range(8), *range(-8, -1), 7]


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no packed floats")
def test_torchs_packed_tensors_say_how_to_pass_them() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        pass

    with pytest.raises(FlyError, match=r"float4_e2m1fn_x2 are not supported(?s:.*)pass tensor.view\(torch.uint8\)"):
        launcher_of(kernel, grid=1, block=1)(torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda A, r: r[0], "cannot be read or written by itself"),
        (lambda A, r: view(A, 2)[0, 0], "cannot be read or written by itself"),
        (lambda A, r: fx.make_rmem_tensor(4, fx.Float4E2M1FN), "do not fill words"),
        (lambda A, r: fx.add_offset(fx.get_iter(view(A, 2)), 8), "whose elements share bytes"),
        (
            lambda A, r: fx.copy(
                fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float4E2M1FN),
                fx.make_view(fx.recast_iter(fx.Float4E2M1FN, fx.get_iter(A)), fx.make_layout((8, 8), (1, 12)))[None, 1],
                r,
            ),
            "is not known to be whole words",
        ),
    ],
)
def test_parts_of_words_are_refused(use: Callable[[Any, Any], Any], message: str) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        use(A, fx.make_rmem_tensor(8, fx.Float4E2M1FN))

    with pytest.raises(FlyError, match=message):
        launcher_of(kernel, grid=1, block=64)(torch.zeros(2, K // 2, dtype=torch.uint8))
