"""The variables of the source in a wave: their values, and how these are shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl.errors import OutOfRange, SimulatorError
from flydsl.hsaco.variables import Parameter, Variable, Variables
from flydsl.simulator.arrays import Array
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.stepping.locations import Unreadable, number_in, read
from flydsl.simulator.stepping.wave_state import WaveState

_LANES_SHOWN, _ELEMENTS_SHOWN = 8, 8
_NO_VIEWS = "sim.lds has the bytes of views of LDS, and the interpreter shows views and layouts"


@dataclass(frozen=True, repr=False)
class VariableValue:
    """The value of a variable of the source in a wave, before its next instruction.

    name: preceded by its function and a colon, if that is not the kernel. element: the type of its elements. values:
    (lanes,) or, for a vector or fragment, (lanes, elements); a masked array if some elements are optimised out; None if
    the variable has no value here, for the reason `why`. active: the lanes that are active, (lanes,) bool.
    """

    name: str
    element: str
    values: Any
    active: Array
    why: str = ""

    def __getitem__(self, lane: Any) -> Any:
        """The value in a lane, or in lanes. Raises SimulatorError for a variable that has none here."""
        if self.values is None:
            raise SimulatorError(
                f"{self.name} is {self.why} here",
                hint="step on, look at the registers, or run the kernel in the interpreter",
            )
        return self.values[lane]

    def text(self, first_lane: int = 0) -> str:
        """The value as text: one number if all active lanes have the same, otherwise those of eight lanes."""
        if self.values is None:
            return self.why
        shown = self.values[self.active] if self.active.any() else self.values
        if all(np.array_equal(lane, shown[0], equal_nan=lane.dtype.kind == "f") for lane in shown):
            return _of_lane(shown[0])
        shown_lanes = slice(first_lane, first_lane + _LANES_SHOWN)
        lanes = zip(self.values[shown_lanes], self.active[shown_lanes], strict=True)
        return "  ".join(_of_lane(value) if active else "·" for value, active in lanes) + " …"

    def __repr__(self) -> str:
        return f"{self.name}: {self.element} = {self.text()}"


def _of_lane(value: Any) -> str:
    if np.ndim(value):
        more = ", …" if len(value) > _ELEMENTS_SHOWN else ""
        return f"[{', '.join(map(_of_lane, value[:_ELEMENTS_SHOWN]))}{more}]"
    if value is np.ma.masked:
        return "?"
    return f"{value:.6g}" if isinstance(value, np.floating) else str(value)


class VariableTable(Sequence[VariableValue]):
    """The variables of a wave by position or name; it prints as a table."""

    def __init__(self, values: Sequence[VariableValue]) -> None:
        self._values = list(values)

    def __getitem__(self, key: Any) -> Any:
        return self.named(key) if isinstance(key, str) else self._values[key]

    def __len__(self) -> int:
        return len(self._values)

    def named(self, name: str) -> VariableValue:
        """The variable of that name. Raises OutOfRange if there is none."""
        found = next((value for value in self._values if value.name == name), None)
        if found is None:
            names = ", ".join(value.name for value in self._values) or "none"
            raise OutOfRange(f"the machine code knows no variable {name!r}", hint=f"it knows {names}; {_NO_VIEWS}")
        return found

    def __repr__(self) -> str:
        if not self._values:
            return "no variables"
        width = max(len(value.name) for value in self._values)
        kinds = max(len(value.element) for value in self._values)
        return "\n".join(f"{value.name:{width}}  {value.element:{kinds}}  {value.text()}" for value in self._values)


def variable_table(described: Variables, launched: Dispatch, wave: WaveState) -> VariableTable:
    """The parameters and variables of a kernel before the next instruction of a wave."""
    kernel, program = launched.kernel_name, launched.program
    mine = [variable for variable in described.variables if variable.kernel == kernel]
    own = program.kernels[kernel].name
    names = sorted({variable.function for variable in mine}, key=len, reverse=True)
    function = next((name for name in names if own.startswith(name)), "")
    has_halves = any(_HALF.search(instruction.listed.text) for instruction in program.instructions_of(kernel))
    given = [_given(parameter, launched, wave) for parameter in _parameters(described, launched)]
    return VariableTable([*given, *(_value(variable, function, wave, has_halves) for variable in mine)])


def _parameters(described: Variables, launched: Dispatch) -> list[Parameter]:
    """The parameters of a kernel; none if its arguments are not those of the source, as some are optimised out."""
    kernel = launched.kernel
    entries = sum(not argument.kind.startswith("hidden_") for argument in kernel.args)
    if described.entries.get(kernel.name) != entries:
        return []
    return [parameter for parameter in described.parameters if parameter.kernel == kernel.name]


def _given(parameter: Parameter, launched: Dispatch, wave: WaveState) -> VariableValue:
    """The value of a parameter; for a tensor, its buffer and address."""
    argument = launched.kernel.args[parameter.entry]
    content = launched.arguments[argument.offset : argument.offset + argument.size]
    if parameter.is_tensor:
        address = int.from_bytes(content, "little")
        buffer = launched.memory.buffer_at(address)
        where = f"{buffer.name}, {buffer.label}, at {address:#x}" if buffer else f"at {address:#x}"
        return VariableValue(parameter.name, parameter.element, None, wave.active, where)
    try:
        value = number_in(content, parameter.element)
    except Unreadable as error:
        return VariableValue(parameter.name, parameter.element, None, wave.active, str(error))
    return VariableValue(parameter.name, parameter.element, np.full(wave.active.size, value), wave.active)


_HALF = re.compile(r"\bv\d+\.[lh]\b")


def _value(variable: Variable, own: str, wave: WaveState, has_halves: bool) -> VariableValue:
    name = variable.name if variable.function == own else f"{variable.function}: {variable.name}"
    element = variable.element if variable.elements == 1 else f"{variable.elements} x {variable.element}"
    place, values, why = variable.at(wave.pc), None, ""
    if place is None:
        unassigned = variable.places and all(place.start > wave.pc for place in variable.places)
        why = "not assigned yet, or optimised out" if unassigned else "optimised out"
    else:
        try:
            values = read(variable, place, wave, has_halves)
        except Unreadable as error:
            why = str(error)
    return VariableValue(name, element, values, wave.active, why)
