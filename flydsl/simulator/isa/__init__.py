"""The table of semantics of the instructions, one file per family. Importing this package fills it.

Besides the families: `table` is how they are entered, `builder` the vocabulary in which they are written, `spellings`
other names of instructions, `common` what families share, `fields` a few bits of several dwords, `narrow_floats` the
formats of 8 bits and less, `dpp` the lane patterns that any vector instruction may have, and `elementary` the functions
of f64 that backends build from their arithmetic.
"""

from flydsl.simulator.isa import (
    argument_reduction,
    async_copy,
    bfloat16,
    buffer,
    compare,
    control,
    convert,
    cross_lane,
    cube,
    division,
    dual,
    extremes,
    flat,
    lds,
    lds_barrier,
    matrix,
    packed,
    register_indexing,
    scalar,
    scalar_float,
    scalar_memory,
    scalar_quads,
    scaled_convert,
    scaled_matrix,
    scaled_wmma,
    sixteen_bits,
    tensor,
    transcendental,
    vector_bytes,
    vector_float,
    vector_integer,
    wmma,
)
from flydsl.simulator.isa.spellings import is_on
from flydsl.simulator.isa.table import TABLE

__all__ = [
    "TABLE",
    "argument_reduction",
    "async_copy",
    "bfloat16",
    "buffer",
    "compare",
    "control",
    "convert",
    "cross_lane",
    "cube",
    "division",
    "dual",
    "extremes",
    "flat",
    "lds",
    "lds_barrier",
    "matrix",
    "packed",
    "register_indexing",
    "scalar",
    "scalar_float",
    "scalar_memory",
    "scalar_quads",
    "scaled_convert",
    "scaled_matrix",
    "scaled_wmma",
    "sixteen_bits",
    "tensor",
    "transcendental",
    "vector_bytes",
    "vector_float",
    "vector_integer",
    "wmma",
]

sixteen_bits.keep_other_halves(is_on)
