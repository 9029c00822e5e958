"""Products of scaled matrix instructions, with scales for all calls or for each one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

M, N, K = 32, 16, 256


@flyc.kernel
def scaled_kernel(A: fx.Tensor, B: fx.Tensor, SA: fx.Tensor, SB: fx.Tensor, C: fx.Tensor, order: fx.Constexpr[Any]):
    """Scales of 32 elements of a row of A and of B: (row, K / 32), one byte in an Int32 each."""
    lane = fx.thread_idx.x
    atom = fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN))
    mma = fx.make_tiled_mma(atom)
    part = mma.get_slice(lane)
    copy = fx.make_copy_atom(fx.UniversalCopy8b(), fx.Float8E4M3FN)
    a, b = (fx.make_view(fx.get_iter(t), fx.make_layout((n, K), (K, 1))) for t, n in ((A, M), (B, N)))
    out = part.partition_C(fx.make_view(fx.get_iter(C), fx.make_layout((M, N), (N, 1))))
    of_a, of_b = part.make_fragment_A(a), part.make_fragment_B(b)
    fx.copy(copy, part.partition_A(a), of_a)
    fx.copy(copy, part.partition_B(b), of_b)
    scales = []
    for tensor, rows in ((SA, M), (SB, N)):
        held = fx.make_rmem_tensor((rows // 16, K // 128), fx.Int32)
        for i in fx.range_constexpr(rows // 16):
            for k in fx.range_constexpr(K // 128):
                held[i, k] = tensor[i * 16 + lane % 16, k * 4 + lane // 16]
        scales.append(held)
    held = fx.make_fragment_like(out)
    held.fill(0.0)
    fx.gemm(mma, held, [of_a, scales[0]], [of_b, scales[1]], held, traversal_order=order)
    fx.gemm(mma, held, of_a, [of_b, 128], held, scale_a=126)  # and the product scaled by 1/2 and 2
    tiled = fx.make_tiled_mma(atom.set_value({"scale_a": fx.Int32(126), "scale_b": fx.Int32(129)}))
    fx.gemm(tiled, held, of_a, of_b, held)  # and by 1/2 and 4, set before the tiling
    fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), held, out)


scaled = launcher_of(scaled_kernel, grid=1, block=64)


def test_each_call_has_its_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    torch.manual_seed(0)
    a, b = (torch.randint(-4, 5, (rows, K)).to(torch.float8_e4m3fn) for rows in (M, N))
    scale_a, scale_b = (torch.randint(125, 130, (rows, K // 32), dtype=torch.int32) for rows in (M, N))

    def whole(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x.float() * torch.exp2(scale.float() - 127).repeat_interleave(32, 1)

    expected = whole(a, scale_a) @ whole(b, scale_b).t() + 3 * a.float() @ b.float().t()
    for order in (None, fx.GemmTraversalOrder.MNK):
        c = torch.zeros(M, N)
        scaled(a, b, scale_a, scale_b, c, order)
        torch.testing.assert_close(c, expected)


def test_scales_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")

    def tensor(*shape: int, dtype: Any = fx.Float8E4M3FN) -> Any:
        made = fx.make_rmem_tensor(shape, dtype)
        made.fill(0)
        return made

    wrong = [
        (lambda a, b, c: fx.gemm(MMA, c, [a, tensor(1, 2, dtype=fx.Int32)], b, c), r"scales_a .* for \(2, 2\) calls"),
        (lambda a, b, c: fx.gemm(MMA, c, [a, 1, 2], b, c), "an operand of 3 parts"),
        (lambda a, b, c: fx.gemm(MMA, c, [a[None, None, 0], tensor(2, dtype=fx.Int32)], b, c), "and a fragment of"),
    ]
    for call, message in wrong:

        @flyc.kernel
        def kernel(C: fx.Tensor, call: fx.Constexpr[Any]):
            call(tensor(32, 2, 2), tensor(32, 1, 2), tensor(4, 2, 1, dtype=fx.Float32))

        launch = launcher_of(kernel, grid=1, block=64)
        with pytest.raises(ArgumentError, match=message) as raised:
            launch(torch.zeros(1), call)
        assert raised.value.at.file == __file__


MMA = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN)))
