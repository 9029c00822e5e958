from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import causal_conv1d as kernel
from tests.kernels.checks import checking


def operands(shape: tuple[int, int, int, int], dtype: torch.dtype = torch.bfloat16) -> dict[str, Any]:
    """Operands whose sequences have states out of order, with one to spare."""
    batch, tokens, channels, width = shape
    random = torch.Generator().manual_seed(sum(shape))

    def numbers(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=random).to(dtype)

    given = {"x": numbers(batch, tokens, channels), "state": numbers(batch + 1, width - 1, channels)}
    given |= {"weight": numbers(channels, width), "bias": numbers(channels)}
    given["indices"] = torch.randperm(batch + 1, generator=random)[:batch].int()
    return given | {"out": torch.zeros(batch, tokens, channels, dtype=dtype)}


def check(given: dict[str, Any], **options: Any) -> None:
    """Whether the kernel has the reference's results; states are copied, so that they are equal."""
    state, out, silu = given["state"], given["out"], options.get("silu", True)
    expected, changed = kernel.reference(*[t for name, t in given.items() if name != "out"], silu=silu)
    with checking():
        assert kernel.causal_conv1d(**given, **options) is out
    torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=1e-2)
    assert torch.equal(state.float(), changed)


@pytest.mark.checked("all")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(2)
def test_equals_torch(shape: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    check(operands(shape, dtype))


@pytest.mark.parametrize("each", kernel.SHARINGS)
def test_channels_of_a_lane(each: int) -> None:
    """Here with the identity instead of silu."""
    check(operands((2, 2, 68, 3)), each=each, silu=False)


def test_an_odd_number_of_channels() -> None:
    check(operands((2, 1, 67, 4), torch.float16))


def test_a_sequence_without_a_state_is_left_out() -> None:
    given = operands((3, 1, 64, 4))
    given["indices"][1] = -1
    before = given["state"].clone()
    check(given)
    unused = [i for i in range(4) if i not in given["indices"].tolist()]
    assert torch.equal(given["state"][unused], before[unused])


def test_more_tokens_than_a_state_has() -> None:
    check(operands((1, 5, 64, 3)))


def test_an_empty_batch_launches_nothing() -> None:
    check(operands((0, 1, 64, 4)))


def test_large_sums_are_their_own_silu() -> None:
    """Where the exponential is infinite, or 0."""
    given = operands((1, 1, 64, 2))
    given["x"][:] = 3000.0
    check(given)


def prompts(lengths: tuple[int, ...], channels: int, width: int, dtype: torch.dtype = torch.bfloat16) -> dict[str, Any]:
    """Prompts of these lengths; every second one has a state before it."""
    given = operands((len(lengths), max(lengths), channels, width), dtype)
    starts = torch.tensor([0, *lengths]).cumsum(0).int()
    flat = torch.randn(int(starts[-1]), channels, generator=torch.Generator().manual_seed(channels)).to(dtype)
    out = given.pop("out").new_zeros(flat.shape)
    return given | {"x": flat, "starts": starts, "initial": torch.arange(len(lengths)).int() % 2, "out": out}


@pytest.mark.checked("all")
@pytest.mark.parametrize("channels", [64, 67])
@pytest.mark.parametrize("width", [4, 2])
@pytest.mark.diagonal(2)
def test_prompts_equal_torch(channels: int, width: int) -> None:
    """Shorter ones than a state, parts that end within a workgroup's and at its end, none, and one without a state."""
    given = prompts((1, 2, 16, 0, 37, 5), channels, width)
    given["indices"][5] = -1
    state, out = given["state"], given["out"]
    expected, changed = kernel.reference_prefill(*[t for name, t in given.items() if name != "out"])
    with checking():
        assert kernel.causal_conv1d_prefill(**given, longest=37) is out
    torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=1e-2)
    assert torch.equal(state.float(), changed)


def test_prompts_in_parts_go_on_from_the_state() -> None:
    """A prompt at once has the results of its two halves, one after the other."""
    given = prompts((40,), 64, 4)
    halves = {name: t.clone() for name, t in given.items()}
    kernel.causal_conv1d_prefill(**given, longest=40)
    for first, last in ((0, 19), (19, 40)):
        part = halves | {"x": halves["x"][first:last], "out": halves["out"][first:last]}
        part |= {"starts": torch.tensor([0, last - first]).int(), "initial": torch.tensor([first]).int()}
        kernel.causal_conv1d_prefill(**part, longest=last - first)
    assert torch.equal(given["out"], halves["out"])
    assert torch.equal(given["state"], halves["state"])


@pytest.mark.sweep
def test_shared_by_measurement() -> None:
    """The state is changed once, however often the launch was tried."""
    given = operands((2, 1, 64, 4))
    expected, changed = kernel.reference(*[t for name, t in given.items() if name != "out"])
    spec = kernel.Convolution(dtype="bf16", tokens=1, channels=64, width=4, each=1, silu=True)
    kernel.causal_conv1d_step(*(t.view(-1) for t in given.values()), 2, spec)
    torch.testing.assert_close(given["out"].float(), expected, rtol=1e-2, atol=1e-2)
    assert torch.equal(given["state"].float(), changed)


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [((1, 1, 67, 4), {"each": 2}, "67 channels, 2 of a lane"), ((1, 1, 64, 4), {"each": 3}, "3 of a lane"),
     ((1, 1, 64, 5), {}, "sums of 5 tokens")],
)  # fmt: skip
def test_wrong_options(shape: tuple[int, int, int, int], options: dict[str, int], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.causal_conv1d(**operands(shape), **options)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("state", torch.zeros(2, 4, 64).bfloat16()), ("weight", torch.zeros(32, 4).bfloat16()),
     ("bias", torch.zeros(64)), ("out", torch.zeros(1, 2, 64).bfloat16())],
)  # fmt: skip
def test_wrong_operands(name: str, wrong: torch.Tensor) -> None:
    with pytest.raises(ArgumentError, match=name):
        kernel.causal_conv1d(**operands((1, 1, 64, 4)) | {name: wrong})
