"""gfx90a: CDNA 2, Instinct MI200 series."""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.gfx942 import GFX942

GFX90A = replace(
    GFX942,
    name="gfx90a",
    # LDS was not measured here: taken to be as in the next generation, with the same size and banks.
    products_per_sum=None,
    float8_conversions=(),
    instruction_sets=("cdna2",),
)
