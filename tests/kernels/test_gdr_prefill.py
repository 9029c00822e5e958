from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import gdr_prefill as kernel
from kernels.gdr_decode import gdr_decode
from tests.kernels import test_gdr_decode
from tests.kernels.checks import checking

Shape = tuple[tuple[int, ...], int, int, int, int]


def operands(
    shape: Shape, state: torch.dtype = torch.float32, dtype: torch.dtype = torch.bfloat16
) -> dict[str, torch.Tensor]:
    """Operands of sequences one after the other, whose states are out of order, with one to spare."""
    lengths, *heads = shape
    given = test_gdr_decode.operands((1, sum(lengths), *heads), state, dtype)
    tokens = {name: given[name][0] for name in ("query", "key", "value", "a", "b")}
    others = {name: given[name] for name in ("dt_bias", "A_log")}
    others["starts"] = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()]).int()
    random = torch.Generator().manual_seed(len(lengths))
    others["indices"] = torch.randperm(len(lengths) + 1, generator=random)[: len(lengths)].int()
    _, v_heads, k_dim, v_dim = heads
    others["state"] = torch.randn(len(lengths) + 1, v_heads, v_dim, k_dim, generator=random).to(state)
    return tokens | others | {"out": given["out"][0]}


def check(given: dict[str, torch.Tensor], **options: Any) -> None:
    """Whether the kernel has the reference's results."""
    state, out = given["state"], given["out"]
    expected, changed = kernel.reference(*[tensor for name, tensor in given.items() if name != "out"])
    with checking():
        assert kernel.gdr_prefill(**given, **options) is out
    torch.testing.assert_close(out.float(), expected, rtol=2e-2, atol=3e-2)
    torch.testing.assert_close(state.float(), changed, rtol=2e-2, atol=3e-2)


@pytest.mark.checked("all")
@pytest.mark.parametrize(
    "shape",
    [kernel.SHAPES[0], *(pytest.param(shape, marks=pytest.mark.sweep) for shape in kernel.SHAPES[1:])],
    ids=str,
)
def test_equals_torch(shape: Shape) -> None:
    """Chunks that are not whole, sequences of one token and of none."""
    check(operands(shape))


@pytest.mark.parametrize("shape", kernel.SHAPES[:1], ids=str)
def test_equals_torch_on_cdna4(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    check(operands(shape))


@pytest.mark.sweep
def test_f16_and_a_state_of_its_type() -> None:
    check(operands(((70,), 1, 1, 32, 32), torch.float16, torch.float16))


@pytest.mark.sweep
@pytest.mark.parametrize("waves", kernel.WAVES)
def test_waves_of_a_workgroup(waves: int) -> None:
    check(operands(((70, 5), 1, 1, 32, 64)), waves=waves)


@pytest.mark.sweep
def test_keys_and_queries_as_they_are() -> None:
    """What is normed here is not normed there: the results are the same."""
    given = operands(((70,), 1, 1, 32, 32))
    for name in ("query", "key"):
        given[name] = torch.nn.functional.normalize(given[name].float(), dim=-1).bfloat16()
    check(given, use_qk_l2norm=False)


def test_a_sequence_without_a_state_is_left_out() -> None:
    given = operands(kernel.SHAPES[0])
    given["indices"][0] = -1
    before = given["state"].clone()
    check(given)
    unused = [i for i in range(3) if i not in given["indices"].tolist()]
    assert torch.equal(given["state"][unused], before[unused])


def test_more_sequences_than_a_wave_has_lanes() -> None:
    check(operands((tuple(i % 3 for i in range(70)), *kernel.SHAPES[0][1:])))


def test_large_decays_leave_the_newest_token() -> None:
    """Where e^G is 0 at the end of a chunk, and a quotient of two would be no number."""
    given = operands(kernel.SHAPES[0])
    given["A_log"][:], given["a"][:] = 4.0, 3.0
    check(given)


def test_a_token_decoded_after_the_prompt() -> None:
    """The state goes on in `gdr_decode`, as if the token had been part of the prompt."""
    given = operands(((66,), *kernel.SHAPES[0][1:]))
    whole, _ = kernel.reference(*[tensor for name, tensor in given.items() if name != "out"])
    prompt = {name: given[name][:-1].contiguous() for name in ("query", "key", "value", "a", "b", "out")}
    kernel.gdr_prefill(**given | prompt | {"starts": torch.tensor([0, 65]).int()})
    token = {name: given[name][None, -1:].contiguous() for name in prompt}
    gdr_decode(**{name: tensor for name, tensor in (given | token).items() if name != "starts"})
    torch.testing.assert_close(token["out"][0, 0].float(), whole[-1], rtol=2e-2, atol=3e-2)


def test_no_tokens() -> None:
    given = operands(kernel.SHAPES[0])
    none = {name: given[name][:0] for name in ("query", "key", "value", "a", "b", "out")}
    assert kernel.gdr_prefill(**given | none | {"starts": torch.zeros(3).int()}).numel() == 0


@pytest.mark.sweep
def test_shared_by_measurement() -> None:
    """The state is changed once, however often the launch was tried."""
    given = operands(((70,), 1, 1, 32, 64))
    expected, changed = kernel.reference(*[tensor for name, tensor in given.items() if name != "out"])
    spec = kernel.Prompt(
        dtype="bf16", state_dtype="f32", a_log_dtype="f32", k_heads=1, v_heads=1, k_dim=32, v_dim=64, waves=1,
        normalizes=True,
    )  # fmt: skip
    scratch = kernel.room_for_chunks(given["query"], given["value"], 1)
    tensors = (tensor.view(-1) for tensor in (*given.values(), *scratch))
    kernel.tuned_gdr_prefill(*tensors, 1, 70, spec)
    torch.testing.assert_close(given["out"].float(), expected, rtol=2e-2, atol=3e-2)
    torch.testing.assert_close(given["state"], changed, rtol=2e-2, atol=3e-2)


@pytest.mark.parametrize(
    ("heads", "options", "said"),
    [((2, 3, 32, 32), {}, "2 heads of keys, 3 of values"), ((1, 1, 48, 32), {}, "heads of 48 and 32"),
     ((1, 1, 32, 32), {"waves": 4}, "4 waves for 32 rows"), ((1, 1, 32, 32), {"dtype": "f32"}, "operands of f32")],
)  # fmt: skip
def test_wrong_options(heads: tuple[int, int, int, int], options: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.build_gdr_prefill_module(*heads, **options)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("key", torch.zeros(71, 1, 32).bfloat16()), ("a", torch.zeros(71, 1).bfloat16()),
     ("state", torch.zeros(3, 2, 64, 32)), ("out", torch.zeros(71, 2, 32)), ("starts", torch.zeros(2).int())],
)  # fmt: skip
def test_wrong_operands(name: str, wrong: torch.Tensor) -> None:
    with pytest.raises(ArgumentError, match=name):
        kernel.gdr_prefill(**operands(kernel.SHAPES[0]) | {name: wrong})
