"""Element types: widths, and what the narrow floats can hold."""

from __future__ import annotations

import math

import pytest
import torch

import flydsl.expr as fx
from flydsl.dialect.elements import FLOAT_BITS, NARROW_FLOATS, element_bits, element_type, round_float
from flydsl.errors import ArgumentError

TORCH = {
    "f8E4M3FN": torch.float8_e4m3fn, "f8E4M3FNUZ": torch.float8_e4m3fnuz, "f8E5M2": torch.float8_e5m2,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
}  # fmt: skip


def test_widths() -> None:
    for name, bits in FLOAT_BITS.items():
        assert element_bits(name) == bits == element_type(name).width
    assert [element_bits(name) for name in ("i1", "i4", "i128", "index")] == [1, 4, 128, 64]
    for name in ("i0", "i129", "f33", "", "i", "int32", "i³"):
        with pytest.raises(ArgumentError, match="not an element type"):
            element_bits(name)


@pytest.mark.parametrize("name", TORCH)
def test_rounding_is_torchs(name: str) -> None:
    for value in (0.1, -0.3, 1 / 3, 100.0, 29.0, 1e-3, 1e-30, 0.0, 17.0, -200.0):
        expected = torch.tensor(value, dtype=torch.float64).to(TORCH[name]).double().item()
        assert round_float(name, value) == expected


@pytest.mark.parametrize(
    ("name", "last"), [("f16", 65520.0), ("bf16", 3.39617752923046e38), ("f32", 3.4028235677973366e38)]
)
def test_numbers_that_would_be_infinite_are_refused(name: str, last: float) -> None:
    for sign in (1, -1):
        assert math.isfinite(round_float(name, sign * math.nextafter(last, 0)))
        assert round_float(name, sign * math.inf) == sign * math.inf
        with pytest.raises(ArgumentError, match="cannot hold"):
            round_float(name, sign * last)


@pytest.mark.parametrize("name", NARROW_FLOATS)
def test_narrow_floats_hold_their_limits_and_no_more(name: str) -> None:
    limits = NARROW_FLOATS[name]
    assert round_float(name, limits.largest) == limits.largest
    assert round_float(name, limits.smallest) == limits.smallest
    for value, held in ((math.inf, limits.infinity), (math.nan, limits.nan), (limits.largest * 2, False)):
        if held:
            assert repr(round_float(name, value)) == repr(value)
        else:
            with pytest.raises(ArgumentError, match="cannot hold"):
                round_float(name, value)


def test_types_of_memory_tell_their_elements_and_address_space() -> None:
    tensor = fx.MemRefType.get(fx.T.f16(), fx.LayoutType.get((4, 8), (1, 4)), fx.AddressSpace.Shared)
    for kind in (tensor, tensor.pointer, fx.PointerType.get(fx.T.f16(), fx.AddressSpace.Shared)):
        assert str(kind.element_type) == "f16"
        assert kind.address_space == fx.AddressSpace.Shared
