"""Semantics of the instructions, one file per family. Importing this package fills the table."""

from flydsl.simulator.isa import (
    buffer,
    compare,
    control,
    convert,
    cross_lane,
    division,
    flat,
    lds,
    matrix,
    packed,
    register_indexing,
    scalar,
    scalar_memory,
    transcendental,
    vector_float,
    vector_integer,
)
from flydsl.simulator.isa.table import TABLE

__all__ = [
    "TABLE",
    "buffer",
    "compare",
    "control",
    "convert",
    "cross_lane",
    "division",
    "flat",
    "lds",
    "matrix",
    "packed",
    "register_indexing",
    "scalar",
    "scalar_memory",
    "transcendental",
    "vector_float",
    "vector_integer",
]
