"""VOP3: the face of a cube map that a direction hits, and the coordinates on it."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried
from flydsl.simulator.isa.table import define


@curried
def _by_axis(choices: Any, b: Builder, x: Value, y: Value, z: Value) -> Value:
    """The value for the axis of the largest component: z before y before x. choices gives those for x, y and z."""
    along_x, along_y, along_z = choices(b, x, y, z)
    is_z = b.and_(b.fcmp("oge", b.fabs(z), b.fabs(x)), b.fcmp("oge", b.fabs(z), b.fabs(y)))
    is_y = b.fcmp("oge", b.fabs(y), b.fabs(x))
    return b.select(is_z, along_z, b.select(is_y, along_y, along_x))


def _negated_below_zero(b: Builder, x: Value, value: Value) -> Value:
    return b.select(b.fcmp("olt", x, b.const("f32", 0.0)), b.fneg(value), value)


def _face(b: Builder, *components: Value) -> list[Value]:
    zero = b.const("f32", 0.0)
    return [
        b.select(b.fcmp("olt", c, zero), b.const("f32", 2.0 * axis + 1), b.const("f32", 2.0 * axis))
        for axis, c in enumerate(components)
    ]


def _s(b: Builder, x: Value, y: Value, z: Value) -> tuple[Value, Value, Value]:
    return b.fneg(_negated_below_zero(b, x, z)), x, _negated_below_zero(b, z, x)


def _t(b: Builder, x: Value, y: Value, z: Value) -> tuple[Value, Value, Value]:
    return b.fneg(y), _negated_below_zero(b, y, z), b.fneg(y)


def _twice(b: Builder, *components: Value) -> list[Value]:
    return [b.fmul(c, b.const("f32", 2.0)) for c in components]


for _name, _choices in (("id", _face), ("sc", _s), ("tc", _t), ("ma", _twice)):
    define(f"v_cube{_name}_f32", "f32 = f32 f32 f32", _by_axis(_choices))
