"""The order of the calls of `fx.gemm`, and calls with an instruction of their own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError
from tests.launchers import launcher_of

M, N, K = 2, 3, 2  # calls along each mode


def fragments() -> tuple[Any, ...]:
    """An instruction, and registers for its calls: D, A, B."""
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    shapes = ((M, N), fx.Float32), ((M, K), fx.Float16), ((N, K), fx.Float16)
    made = [fx.make_rmem_tensor((4, *calls), dtype) for calls, dtype in shapes]
    for tensor in made:
        tensor.fill(0)
    return atom, *made


def places(trace: Callable[..., Any], **options: Any) -> list[tuple[int, int, int]]:
    def body(A: Any, Out: Any) -> list[tuple[int, int, int]]:
        atom, d, a, b = fragments()
        seen: list[tuple[int, int, int]] = []
        fx.gemm(atom, d, a, b, d, atom_callback=lambda call, at: seen.append(at) or call, **options)
        return seen

    return trace(body)  # type: ignore[no-any-return]


# The orders in which FlyDSL 0.4.2 makes the calls, with the names it has for them.
ORDERS: dict[str, list[tuple[int, int, int]]] = {
    "MNK": [(m, n, k) for k in range(K) for n in range(N) for m in range(M)],
    "KMN": [(m, n, k) for n in range(N) for m in range(M) for k in range(K)],
    "NMK": [(m, n, k) for k in range(K) for m in range(M) for n in range(N)],
    "MNK_Serpentine": [
        (0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 2, 0), (1, 2, 0),
        (1, 2, 1), (0, 2, 1), (0, 1, 1), (1, 1, 1), (1, 0, 1), (0, 0, 1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_the_innermost_loop_comes_first_in_the_name(order: str, trace: Callable[..., Any]) -> None:
    assert places(trace, traversal_order=getattr(fx.GemmTraversalOrder, order)) == ORDERS[order]
    assert places(trace, traversal_order=order.lower()) == ORDERS[order]


def test_without_an_order_the_second_operand_changes_first(trace: Callable[..., Any]) -> None:
    assert places(trace) == ORDERS["NMK"]


def test_a_layout_numbers_the_calls(trace: Callable[..., Any]) -> None:
    k_first = fx.make_layout((K, M, N), (M * N, 1, M))
    assert places(trace, traversal_layout=k_first) == ORDERS["KMN"]


@pytest.mark.parametrize("order", ORDERS)
def test_the_program_has_that_order(order: str) -> None:
    """Which of the earlier calls had the operands of each call."""

    @flyc.kernel
    def kernel(D: fx.Tensor):
        atom, d, a, b = fragments()
        fx.gemm(atom, d, a, b, d, traversal_order=order.upper())
        D[0] = d[0]

    stages = launcher_of(kernel, grid=1, block=64).lower(torch.zeros(64), arch="gfx942")
    stages.run(until="fly-layout-lowering")
    text = str(next(stage for stage in stages if stage.name == "fly-layout-lowering").after)
    operands = [line.split("(")[1].split(")")[0].split(", ")[1:] for line in re.findall(r"mma_atom_call.*", text)]
    places = [((m, n), (m, k), (n, k), (m, n)) for m, n, k in ORDERS[order]]
    assert firsts(operands) == firsts(places)


def firsts(rows: list[Any]) -> list[list[int]]:
    """For each item of each row the number of the first row that has it at its place."""
    columns = list(zip(*rows, strict=True))
    return [[column.index(item) for column, item in zip(columns, row, strict=True)] for row in rows]


def test_a_call_has_the_values_that_its_callback_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instruction of gfx950 with scales: those of the second call along M are twice those of the first."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")

    @flyc.kernel
    def kernel(A: fx.Tensor, D: fx.Tensor):
        lane = fx.thread_idx.x
        atom = fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN))
        a, b = (fx.make_rmem_tensor((32, calls, 1), fx.Float8E4M3FN) for calls in (2, 1))
        d = fx.make_rmem_tensor((4, 2, 1), fx.Float32)
        for tensor in (a, b):
            for i in fx.range_constexpr(fx.size(tensor.shape)):
                tensor[i] = A[0]
        d.fill(0.0)
        fx.gemm(
            atom, d, a, b, d, scale_b=127,
            atom_callback=lambda call, at: call.set_value("scale_a", 127 + at[0]),
        )  # fmt: skip
        for i in fx.range_constexpr(8):
            D[lane + 64 * i] = d[i]

    ones, out = torch.ones(4).to(torch.float8_e4m3fn), torch.zeros(512)
    launcher_of(kernel, grid=1, block=64)(ones, out)
    assert (out[:256] == 128).all()
    assert (out[256:] == 256).all()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"traversal_order": "MNK", "traversal_layout": fx.make_layout(12, 1)}, "one or the other"),
        ({"traversal_layout": fx.make_layout(6, 1)}, "numbers from 0 to 11"),
        ({"traversal_layout": fx.make_layout(12, 2)}, "numbers from 0 to 11"),
        ({"traversal_order": "MMK", "atom_callback": lambda call, at: call}, "order 'MMK'"),
        ({"atom_callback": lambda call, at: None}, "must return the instruction that it is called with"),
    ],
)
def test_what_is_no_order_or_instruction_is_refused(
    options: dict[str, Any], text: str, trace: Callable[..., Any]
) -> None:
    def body(A: Any, Out: Any) -> None:
        atom, d, a, b = fragments()
        fx.gemm(atom, d, a, b, d, **options)

    with pytest.raises(FlyError, match=text):
        trace(body)
