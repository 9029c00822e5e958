"""How LLVM's instruction tests are read and counted, on a few lines in their form."""

from __future__ import annotations

from pathlib import Path

import pytest

from flydsl.arch import get_arch
from tests.simulator.isa.llvm_tests import Expected, expectations, main, understood

TEXT = """// RUN: llvm-mc -mcpu=gfx1100 -show-encoding %s
s_nop 3
// GFX11: s_nop 3                                 ; encoding: [0x03,0x00,0x80,0xbf]
// W32: v_cmp_eq_u32_e64 s10, v1, v2              ; encoding: [0x0a,0x00,0x4a,0xd4,0x01,0x05,0x02,0x00]
// W64: v_cmp_eq_u32_e64 s[10:11], v1, v2         ; encoding: [0x0a,0x00,0x4a,0xd4,0x01,0x05,0x02,0x00]
// GFX11: v_mov_b16_e32 v5.l, v1.h                ; encoding: [0x81,0x39,0x0a,0x7e]
// GFX11: s_setkill 5                             ; encoding: [0x05,0x00,0x81,0xbf]
// GFX11: s_nop 4                                 ; encoding: [0xff,0x00,0x80,0xbf]
// GFX11: of_another_llvm v1                      ; encoding: [0x00,0x00,0x00,0x00]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gfx11_asm_sopp.s").write_text(TEXT)
    (tmp_path / "gfx11_asm_sopp_err.s").write_text("// GFX11: s_nop 9 ; encoding: [0x09,0x00,0x80,0xbf]\n")
    (tmp_path / "gfx12_asm_sopp.s").write_text("// GFX12: s_nop 8 ; encoding: [0x08,0x00,0x80,0xbf]\n")
    return tmp_path


def test_what_llvm_encodes_alike_is_understood_or_refused(folder: Path) -> None:
    arch = get_arch("gfx1100")
    expected = expectations(folder, arch)
    assert set(expected.values()) == {"sopp"}
    assert len(expected) == 7
    compare = "0x0a,0x00,0x4a,0xd4,0x01,0x05,0x02,0x00"
    assert dict(understood(expected, arch)) == {
        Expected("s_nop 3", "0x03,0x00,0x80,0xbf", 32): True,
        Expected("v_cmp_eq_u32_e64 s10, v1, v2", compare, 32): True,
        Expected("v_cmp_eq_u32_e64 s[10:11], v1, v2", compare, 64): True,
        Expected("v_mov_b16_e32 v5.l, v1.h", "0x81,0x39,0x0a,0x7e", 32): True,
        Expected("s_setkill 5", "0x05,0x00,0x81,0xbf", 32): False,
    }


def test_the_share_of_each_family_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(str(folder), "gfx1100", "gfx1201")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| instructions | gfx1100: texts | understood | gfx1201: texts | understood |"
    assert lines[2] == "| Scalar | 5 | 4 | 1 | 1 |"
    assert lines[-1] == "| All | 5 | 4 | 1 | 1 |"
