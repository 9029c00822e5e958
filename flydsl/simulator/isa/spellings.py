"""Older spellings of mnemonics: LLVM's own for gfx90a, which it still assembles for later GPUs. Inline assembly stands
in a listing as written.

v_mfma_f32_16x16x16f16 is v_mfma_f32_16x16x16_f16, and v_mfma_f32_32x32x4bf16_1k is v_mfma_f32_32x32x4_2b_bf16.
"""

from __future__ import annotations

import re

from flydsl.simulator.isa.table import TABLE, mnemonic_of

_MFMA = re.compile(r"(v_mfma_\w+_\d+x\d+x\d+)(?:_\d+b)?_(f64|f32|xf32|f16|bf16|i8)$")


def _spellings() -> dict[str, str]:
    spellings = {}
    for mnemonic in map(mnemonic_of, TABLE):
        match = _MFMA.match(mnemonic)
        if match:
            spellings[match[1] + match[2] + ("_1k" if match[2] == "bf16" else "")] = mnemonic
    return spellings


SPELLINGS = _spellings()
