"""Attributes of a kernel that a program sets: `kernel(..., value_attrs={"rocdl.waves_per_eu": 2})`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mlir import ir

from flydsl.dialect.location import argument_error

# What the translation to LLVM IR takes for the attributes of ROCDL that it knows.
_FORMS = {
    "rocdl.waves_per_eu": r"[1-9]\d*",
    "rocdl.flat_work_group_size": r"[1-9]\d*,[1-9]\d*",
    "rocdl.max_flat_work_group_size": r"[1-9]\d*",
    "rocdl.uniform_work_group_size": r"True|False",
    "rocdl.unsafe_fp_atomics": r"True|False",
}
_DISCARDABLE = re.compile(r"[a-z_]\w*(\.\w+)+")


def set_attributes(op: ir.OpView, unit_attrs: Sequence[str] | None, value_attrs: Mapping[str, Any] | None) -> None:
    """Set attributes of a kernel or its launch. Values that are None are left out."""
    for name in unit_attrs or ():
        if not _DISCARDABLE.fullmatch(name):
            raise argument_error(
                f"unit_attrs=[{name!r}]: an attribute's name has its dialect before it, such as gpu.{name}"
            )
        op.attributes[name] = ir.UnitAttr.get()
    for name, value in (value_attrs or {}).items():
        if value is not None:
            op.attributes[name] = kernel_attribute(name, value)


def kernel_attribute(name: str, value: Any) -> ir.Attribute:
    """The attribute `name` of a kernel.

    value: an int, bool, str, a list of ints, or an MLIR attribute. "passthrough" takes LLVM's function attributes: a
    list of names and of [name, value]. Raises ArgumentError for other values.
    """
    if name == "passthrough":
        return _passthrough(value)
    if not _DISCARDABLE.fullmatch(name):
        raise argument_error(
            f"value_attrs={{{name!r}: {value!r}}}: a kernel has no such attribute",
            '{"rocdl.waves_per_eu": 2, "rocdl.flat_work_group_size": "64,256", "passthrough": ["noinline"]}',
        )
    plain = _plain(value)
    if name in _FORMS and not re.fullmatch(_FORMS[name], str(plain)):
        raise argument_error(
            f"value_attrs={{{name!r}: {value!r}}}: the value has the wrong form", f"write it as {_FORMS[name]}"
        )
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int) and abs(value) < 2**31:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, Sequence) and value and all(type(item) is int and abs(item) < 2**31 for item in value):
        return ir.DenseI32ArrayAttr.get(list(value))
    raise argument_error(
        f"value_attrs={{{name!r}: {value!r}}}: this is not an attribute",
        "pass an int, a bool, a str, a list of ints, or an attribute of MLIR",
    )


def _plain(value: Any) -> Any:
    """The Python value of an integer, Boolean or string attribute; other attributes as they are."""
    if isinstance(value, ir.BoolAttr | ir.IntegerAttr | ir.StringAttr):
        return value.value
    return value


def _passthrough(value: Any) -> ir.Attribute:
    """LLVM's attributes of functions as MLIR writes them: names, and pairs of a name and a value."""
    if isinstance(value, ir.ArrayAttr):
        return value
    entries = list(value) if isinstance(value, list | tuple) else [value]
    return ir.ArrayAttr.get([_entry(entry) for entry in entries])


def _entry(entry: Any) -> ir.Attribute:
    if isinstance(entry, ir.Attribute):
        return entry
    parts = [entry] if isinstance(entry, str) else list(entry) if isinstance(entry, list | tuple) else []
    if not 1 <= len(parts) <= 2 or not isinstance(parts[0], str):
        raise argument_error(
            f"an entry of passthrough must be a name, or a name and a value, got {entry!r}",
            'pass ["amdgpu-num-vgpr", "128"], for example',
        )
    texts = [ir.StringAttr.get(str(part)) for part in parts]
    return texts[0] if len(texts) == 1 else ir.ArrayAttr.get(texts)
