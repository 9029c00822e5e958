"""Sentences or formulas that say what each instruction does: one file per family.

A file has pairs of a pattern of mnemonics and a sentence, tried in order. `{0}`, `{1}` ... in a sentence are the groups
of the pattern, `{name}` are its named groups; `words` puts them into words. D is the result, S0, S1, S2 are the
sources, in the order of the assembly text. For memory, the text names what is read or written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from flydsl.simulator.isa.meanings import control, conversions, lanes, matrix, memory, scalar, vector
from flydsl.simulator.isa.meanings.words import in_words, of_group

_RETURNING = re.compile(r"(?<=^ds_)(\w+)_rtn(?=_)")
"""LDS operations that return what was there have it in their names; what they do is the same."""
_FAMILIES = (control, matrix, memory, lanes, conversions, scalar, vector)


@cache
def meaning(mnemonic: str) -> str:
    """The effect of an instruction, as a sentence or formula; "" for an unknown one. mnemonic: as any GPU spells it,
    without its encoding.

    >>> meaning("v_add_f32"), meaning("s_and_b64")
    ('D = S0 + S1, in f32.', 'D = S0 & S1, of 64 bits; SCC = D is not 0.')
    >>> meaning("v_dual_mov_b32::v_dual_mul_f32")
    'D = S0, of 32 bits. At the same time: D = S0 * S1, in f32.'
    """
    parts = [_RETURNING.sub(r"\1", name.replace("v_dual_", "v_")) for name in mnemonic.split("::")]
    found = [next(_sentences(name), "") for name in parts]
    return " At the same time: ".join(found) if all(found) else ""


def _sentences(name: str) -> Iterator[str]:
    for pattern, sentence in _compiled():
        if match := pattern.fullmatch(name):
            named = {key: of_group(key, value) for key, value in match.groupdict().items()}
            yield sentence.format(*map(in_words, match.groups()), **named)


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), sentence) for family in _FAMILIES for pattern, sentence in family.MEANINGS)
