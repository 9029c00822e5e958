"""Tiled copies that transpose as they read from LDS: operands of matrix instructions that lie along M or N."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.atoms import LDSReadTrans
from flydsl.layout import Layout, size
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

M, N, K = 16, 32, 64


def launcher(dtype: Any, atom: Any, k: int) -> Any:
    """A product of A (M,K) and B (N,K), both stored along M and N, which are read transposed from LDS."""

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        lane = fx.thread_idx.x
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, k, dtype)))
        fragments = []
        for operand, tensor, rows in (("A", A, M), ("B", B, N)):
            shared = fx.SharedAllocator().allocate(fx.Array[dtype, rows * K, 16]).peek()
            tile = fx.make_view(shared.ptr, fx.make_layout((rows, K), (1, rows)))
            for i in fx.range_constexpr(rows * K // 64):
                tile[i * 64 + lane] = tensor[i * 64 + lane]
            fx.barrier()
            make = fx.make_tiled_copy_A if operand == "A" else fx.make_tiled_copy_B
            copy = make(fx.make_copy_atom(atom(), dtype), mma).get_slice(lane)
            part = mma.get_slice(lane)
            fragment = part.make_fragment_A(tile) if operand == "A" else part.make_fragment_B(tile)
            fx.copy(fx.make_copy_atom(atom(), dtype), copy.partition_S(tile), copy.retile(fragment))
            fragments.append(fragment)
        out = mma.get_slice(lane).partition_C(fx.make_view(fx.get_iter(C), fx.make_layout((M, N), (N, 1))))
        held = fx.make_fragment_like(out)
        held.fill(0.0)
        fx.gemm(mma, held, *fragments, held)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), held, out)

    return launcher_of(kernel, grid=1, block=64)


@pytest.mark.parametrize(
    ("dtype", "of_torch", "atom", "k", "width"),
    [
        (fx.Float16, torch.float16, fx.rocdl.cdna4.LDSReadTrans16_64b, 16, "b16"),
        (fx.BFloat16, torch.bfloat16, fx.rocdl.cdna4.LDSReadTrans16_64b, 32, "b16"),
        (fx.Float8E4M3FN, torch.float8_e4m3fn, fx.rocdl.cdna4.LDSReadTrans8_64b, 32, "b8"),
    ],
)
def test_operands_along_the_other_mode(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, of_torch: torch.dtype, atom: Callable[[], Any], k: int, width: str
) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    torch.manual_seed(0)
    a, b = (torch.randint(-4, 5, (K, rows)).to(of_torch).t() for rows in (M, N))
    c = torch.zeros(M, N)
    launch = launcher(dtype, atom, k)
    launch(a, b, c)
    assert torch.equal(c, a.float() @ b.float().t())
    assert f"ds_read_b64_tr_{width}" in launch.lower(a, b, c).artifact.isa


def test_what_a_thread_reads_and_what_it_holds() -> None:
    atom = fx.make_copy_atom(fx.rocdl.cdna4.LDSReadTrans16_64b(), fx.Float16)
    assert (atom.layout_src_tv, atom.layout_dst_tv) == (Layout((16, 4), (4, 1)), Layout((16, 4), (1, 16)))
    assert LDSReadTrans(64, 8).threads == 16
    assert size(atom.layout_dst_tv) == 64
    plain = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16)
    assert plain.layout_src_tv == plain.layout_dst_tv == Layout((1, 4), (4, 1))
