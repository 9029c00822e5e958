"""Handlers that share functions: what is compiled once, and what happens when a part of it is gone from the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from flydsl.simulator.native.generate import generate
from flydsl.simulator.native.library import HandlerLibrary
from flydsl.simulator.native.shape import OperandShape, Shape

pytestmark = pytest.mark.slow

DENORMALS_KEPT = 0xF0


def product(types: str) -> Shape:
    """v[0:3] = v[4:5] * v[6:7] + v[8:11], or other registers."""
    d, a, b, c = (OperandShape("register", slot, "v", count) for slot, count in enumerate((4, 2, 2, 4)))
    return Shape(f"v_mfma_f32_16x16x32_{types}@fnuz", "", (d,), (a, b, c, None), (), DENORMALS_KEPT)


def test_products_of_other_types_share_their_sums() -> None:
    one, other = (generate(product(types), "handler") for types in ("fp8_fp8", "bf8_bf8"))
    assert one.text != other.text
    of_one, of_other = ({function.name for function in handler.functions} for handler in (one, other))
    assert len(of_one & of_other) == 1  # each has conversions of its own besides
    assert len(of_one) == len(of_other) == 2


def test_a_function_that_is_gone_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path))
    shape = product("fp8_fp8")

    def has_handler() -> bool:
        library = HandlerLibrary()
        return library.addresses([shape])[shape] != library.fall_back_address

    assert has_handler()
    packs = [path for path in (tmp_path / "simulator").iterdir() if path.is_file() and not path.is_symlink()]
    parts = [path for path in packs if b"shared_" in path.read_bytes()]
    assert len(parts) == 3  # the handler, the sums, the conversion
    for part in parts:
        content = part.read_bytes()
        part.unlink()
        assert has_handler()
        assert part.read_bytes() == content
