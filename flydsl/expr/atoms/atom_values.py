"""Numbers that the calls of an atom use besides their operands: `soffset` of buffer copies, scales of products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mlir import ir

from flydsl.dialect.atom_inference import check_value
from flydsl.dialect.location import argument_error
from flydsl.dialect.types import FlyType
from flydsl.errors import MissingName, did_you_mean, how_to_make
from flydsl.errors.missing_attributes import Explorable
from flydsl.expr.numeric import Int32
from flydsl.expr.tracing.emit import emit_fly
from flydsl.expr.tracing.immediates import immediate
from flydsl.expr.tracing.operands import StaticFlyValue, located

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyTensor, Number

__all__ = ["atom_set_value"]

_Atom = TypeVar("_Atom", bound="AtomWithValues")
_Tiled = TypeVar("_Tiled", bound="TiledAtom")
_Part = TypeVar("_Part", bound="OfOneThread")
_AnyAtom = TypeVar("_AnyAtom", bound="AtomWithValues | TiledAtom | OfOneThread | TileCopy")


class AtomWithValues(StaticFlyValue, Explorable):
    """A copy or matrix instruction. values: numbers that its calls use besides their operands, by name."""

    def __init__(self, fly: FlyType, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(fly)
        self.values = dict(values or {})

    def set_value(self: _Atom, values: Mapping[str, Any] | str, value: Any = None) -> _Atom:
        """The same instruction with numbers for its calls: `atom.set_value("soffset", elements)`."""
        given = {values: value} if isinstance(values, str) else values
        for name in given:
            located(check_value, self.type, name)
        known = {
            name: immediate(f"{name} of {self.type}", given[name], 0, largest)
            for name, largest in self.type.op.immediates.items()
            if name in given
        }
        return type(self)(self.type, {**self.values, **given, **known}) if given else self


class TiledAtom(StaticFlyValue, Explorable):
    """A copy or matrix instruction repeated over a tile. values: those that were set on the instruction."""

    def __init__(self, fly: FlyType, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(fly)
        self.values = dict(values or {})

    @property
    @abstractmethod
    def atom(self) -> AtomWithValues:
        """The instruction."""

    def set_value(self: _Tiled, values: Mapping[str, Any] | str, value: Any = None) -> _Tiled:
        """The same tiling with numbers for the instruction's calls: see `CopyAtom.set_value`."""
        return type(self)(self.type, self.atom.set_value(values, value).values)


class OfOneThread(Explorable):
    """One thread's part of a tiled copy or product, which also has what the whole has."""

    tiled: TiledAtom
    thr_idx: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "tiled" or not hasattr(type(self.tiled), name):
            known = [other for other in dir(type(self)) if not other.startswith("_")]
            hint = did_you_mean(name, known).strip() or f"it has {', '.join(known)}"
            raise MissingName(f"{type(self).__name__!r} object has no attribute {name!r}", hint=hint)
        return getattr(self.tiled, name)

    def set_value(self: _Part, values: Mapping[str, Any] | str, value: Any = None) -> _Part:
        """The part of the same tiling with numbers for the instruction's calls."""
        return type(self)(self.tiled.set_value(values, value), self.thr_idx)  # type: ignore[call-arg]


class TileCopy(ABC):
    """A copy that one instruction does for a whole tile, whatever the tensors' elements are."""

    @abstractmethod
    def set_value(self, values: Mapping[str, Any] | str, value: Any = None) -> TileCopy:
        """The same copy with numbers for its calls."""

    @abstractmethod
    def issue(self, source: AnyTensor, target: AnyTensor) -> None:
        """Start the copy."""


def with_values(atom: ir.Value, values: Mapping[str, Any]) -> ir.Value:
    """The atom with its values set."""
    for field, number in values.items():
        operands = [atom, Int32(number).ir_value()]
        atom = emit_fly("atom.set_value", operands, attributes={"field": field}).result
    return atom


def atom_set_value(atom: _AnyAtom, field: str, value: Number) -> _AnyAtom:
    """An atom with a number for its calls: `soffset` of a buffer copy, `scale_a` of a scaled matrix instruction."""
    if not hasattr(atom, "set_value"):
        raise argument_error(f"atom_set_value takes a copy or MMA atom first, not {atom!r}", how_to_make.COPY_ATOM)
    return cast("_AnyAtom", atom.set_value({field: value}))
