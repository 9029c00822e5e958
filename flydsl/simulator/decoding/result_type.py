"""The type of what an instruction writes to its first result, as far as its name tells."""

from __future__ import annotations

import re
from functools import cache

_TYPE = re.compile(r"(bf|f|i|u)(8|16|32|64)")
_FIXED = (
    (re.compile(r"[sv]_cmpx?_|v_readfirstlane|v_readlane|s_cmp"), ""),
    (re.compile(r"v_fma_mixlo_|v_fma_mixhi_|v_mad_mix(lo|hi)_"), "f16"),
    (re.compile(r"v_cvt_pk\w*_(fp8|bf8|u8|i8)|v_cvt_\w*pk_(fp|bf)[468]"), ""),
)


@cache
def result_type(mnemonic: str) -> str:
    """The element type by its name in MLIR; "" where the name tells none: of loads, moves, logic, masks.

    A packed pair of 16 bits has the type of its halves. Where a name has two types the result's is the first.

    >>> [result_type(name) for name in ("v_add_f32", "v_cvt_f32_i32", "v_pk_mul_f16", "v_mfma_f32_16x16x16_f16")]
    ['f32', 'f32', 'f16', 'f32']
    >>> [result_type(name) for name in ("v_mad_u64_u32", "v_mov_b32", "global_load_dword", "v_cmp_lt_f32")]
    ['ui64', '', '', '']
    """
    if not mnemonic.startswith(("v_", "s_")):
        return ""
    for pattern, kind in _FIXED:
        if pattern.match(mnemonic):
            return kind
    found = next((match for word in mnemonic.split("_") if (match := _TYPE.fullmatch(word))), None)
    return "" if found is None else f"{'ui' if found[1] == 'u' else found[1]}{found[2]}"
