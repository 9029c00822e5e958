"""Numbers of every element type, against torch's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from flydsl.dialect.elements import NARROW_FLOATS
from workbench.run.number_formats import FORMS, bits_of, numbers, texts, width_of

TYPES = {
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E4M3FNUZ": torch.float8_e4m3fnuz,
    "f8E5M2": torch.float8_e5m2,
    "f8E5M2FNUZ": torch.float8_e5m2fnuz,
    "f8E8M0FNU": torch.float8_e8m0fnu,
}


@pytest.mark.parametrize("form", TYPES)
def test_floats_of_a_byte(form: str) -> None:
    every = torch.arange(256, dtype=torch.uint8)
    expected = every.view(TYPES[form]).to(torch.float64).numpy()
    np.testing.assert_array_equal(numbers(every.numpy(), form), expected)


def test_bf16() -> None:
    every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16)
    expected = every.view(torch.bfloat16).to(torch.float32).numpy()
    np.testing.assert_array_equal(numbers(every.numpy().view(np.uint8), "bf16"), expected)


@pytest.mark.parametrize("form", ["f6E2M3FN", "f6E3M2FN", "f4E2M1FN"])
def test_floats_of_less_than_a_byte(form: str) -> None:
    bits = bits_of(form)
    codes = np.arange(1 << bits, dtype=np.uint64)
    stream = sum(int(code) << i * bits for i, code in enumerate(codes))
    data = np.frombuffer(stream.to_bytes(bits * len(codes) // 8, "little"), np.uint8)
    found = numbers(data, form)
    half = len(found) // 2
    assert (np.diff(found[:half]) > 0).all()  # the codes of positive numbers are in their order
    np.testing.assert_array_equal(found[half:], -found[:half])
    assert found.max() == NARROW_FLOATS[form].largest


def test_integers_of_four_bits() -> None:
    data = np.array([0x10, 0xF8], np.uint8)
    assert numbers(data, "i4").tolist() == [0, 1, -8, -1]
    assert numbers(data, "ui4").tolist() == [0, 1, 8, 15]


@pytest.mark.parametrize("form", FORMS)
def test_no_value_is_wider_than_its_column(form: str) -> None:
    data = np.random.default_rng(0).integers(0, 256, 4096).astype(np.uint8)
    shown = texts(data, form)
    assert len(shown) == 8 * 4096 // bits_of(form)
    assert max(map(len, shown)) <= width_of(form)
