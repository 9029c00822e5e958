from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import gdr_decode as kernel
from tests.kernels.checks import checking

STATES = (torch.float32, torch.bfloat16)


def operands(
    shape: tuple[int, int, int, int, int, int],
    state: torch.dtype = torch.float32,
    dtype: torch.dtype = torch.bfloat16,
) -> dict[str, Any]:
    """Operands whose sequences have states out of order, with one to spare."""
    batch, tokens, k_heads, v_heads, k_dim, v_dim = shape
    random = torch.Generator().manual_seed(sum(shape))

    def numbers(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=random)

    given = {name: numbers(batch, tokens, k_heads, k_dim) for name in ("query", "key")}
    given |= {"value": numbers(batch, tokens, v_heads, v_dim)}
    given |= {name: numbers(batch, tokens, v_heads) for name in ("a", "b")} | {"dt_bias": numbers(v_heads)}
    given = {name: tensor.to(dtype) for name, tensor in given.items()} | {"A_log": numbers(v_heads)}
    given["indices"] = torch.randperm(batch + 1, generator=random)[:batch].int()
    given["state"] = numbers(batch + 1, v_heads, v_dim, k_dim).to(state)
    return given | {"out": torch.zeros(batch, tokens, v_heads, v_dim, dtype=dtype)}


def check(given: dict[str, Any], **options: Any) -> None:
    """Whether the kernel has the reference's results."""
    state, out = given["state"], given["out"]
    expected, changed = kernel.reference(*[t for name, t in given.items() if name != "out"])
    with checking():
        assert kernel.gdr_decode(**given, **options) is out
    torch.testing.assert_close(out.float(), expected, rtol=2e-2, atol=2e-2)
    close = 1e-4 if state.dtype == torch.float32 else 2e-2
    torch.testing.assert_close(state.float(), changed, rtol=close, atol=close)


@pytest.mark.checked
@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(2)
def test_equals_torch(shape: tuple[int, int, int, int, int, int], state: torch.dtype) -> None:
    check(operands(shape, state))


def test_a_sequence_without_a_state_is_left_out() -> None:
    given = operands((3, 1, 1, 2, 64, 32), dtype=torch.float16)
    given["indices"][1] = -1
    before = given["state"].clone()
    check(given)
    unused = [i for i in range(4) if i not in given["indices"].tolist()]
    assert torch.equal(given["state"][unused], before[unused])


def test_an_empty_batch_launches_nothing() -> None:
    check(operands((0, 1, 2, 4, 128, 128)))


def test_a_large_gate_is_its_own_softplus() -> None:
    """Above the threshold, where the exponential would be infinite; and far below, where nothing is forgotten."""
    given = operands((2, 1, 1, 2, 64, 32))
    given["a"].view(-1)[:] = torch.tensor([200.0, 25.0, -30.0, -200.0]).bfloat16()
    check(given)


@pytest.mark.sweep
def test_shared_by_measurement() -> None:
    """The state is changed once, however often the launch was tried."""
    given = operands((2, 1, 1, 2, 128, 128))
    expected, changed = kernel.reference(*[t for name, t in given.items() if name != "out"])
    step = kernel.Step(
        dtype="bf16", state_dtype="f32", a_log_dtype="f32", tokens=1, k_heads=1, v_heads=2, k_dim=128, v_dim=128,
        parts=1, waves=1, k_lanes=16, normalizes=True,
    )  # fmt: skip
    kernel.gdr_step(*(t.view(-1) for t in given.values()), 2, step)
    torch.testing.assert_close(given["out"].float(), expected, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(given["state"], changed, rtol=1e-4, atol=1e-4)


@pytest.mark.sweep
@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize(("parts", "waves", "k_lanes"), [(1, 4, 4), (2, 1, 4), (4, 2, 8), (8, 1, 8), (4, 4, 16)])
def test_every_way_to_share_a_head(parts: int, waves: int, k_lanes: int, state: torch.dtype) -> None:
    check(operands((2, 2, 1, 2, 128, 128), state), parts=parts, waves=waves, k_lanes=k_lanes)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"parts": 3}, "32 rows in 3 parts"), ({"k_lanes": 3}, "3 lanes for a row of 64"),
     ({"k_lanes": 32}, "32 lanes for a row of 64"), ({"waves": 16}, "64 at once")],
)  # fmt: skip
def test_wrong_options(options: dict[str, int], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.gdr_decode(**operands((1, 1, 1, 2, 64, 32)), **options)


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [("value", torch.zeros(1, 1, 3, 32), r"\(1, 1, 3\)"), ("key", torch.zeros(1, 1, 2, 32), "key"),
     ("state", torch.zeros(2, 2, 32, 32), "state"), ("out", torch.zeros(1, 1, 4, 32, dtype=torch.float16), "out")],
)  # fmt: skip
def test_wrong_operands(name: str, wrong: torch.Tensor, said: str) -> None:
    given = operands((1, 1, 2, 4, 64, 32))
    given[name] = wrong if name in ("state", "out") else wrong.bfloat16()
    with pytest.raises(ArgumentError, match=said):
        kernel.gdr_decode(**given)
