"""The variables of the source in a code object: where each one is while the machine code runs, from DWARF.

Registers have the numbers of AMDGPUUsage ("Register Identifier"). pyelftools reads the lists of locations.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from flydsl.hsaco.elf import read_symbols
from flydsl.hsaco.listing import read_listing

_LABEL = "fly_instruction_"

Operation = tuple[str, tuple[int | bytes, ...]]
"""One of an expression: its name without `DW_OP_`, and its operands. A register is ("register", (file, number))."""


@dataclass(frozen=True)
class Place:
    """The value of a variable between two instructions, by their indices, `stop` excluded.

    pieces: consecutive parts, each with its size in bytes and the expression of its value; the size is 0 of a single
    one, and the expression is empty where the part is optimised out.
    """

    start: int
    stop: int
    pieces: tuple[tuple[int, tuple[Operation, ...]], ...]


@dataclass(frozen=True)
class Variable:
    """A variable of a function of the source.

    element: the type of its elements, by MLIR's name. elements: how many it has. places: in the machine code.
    """

    kernel: str
    function: str
    name: str
    element: str
    elements: int
    places: tuple[Place, ...]

    @property
    def title(self) -> str:
        """Its name in DWARF: "function:variable 4xf32"."""
        return f"{self.function}:{self.name} {self.elements}x{self.element}"

    def at(self, index: int) -> Place | None:
        """The place before an instruction; None where it has none: it is not assigned there, or is optimised out."""
        return next((place for place in self.places if place.start <= index < place.stop), None)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel. element: its type, by MLIR's name, or of a tensor that of its elements.

    entry: of the kernel's arguments in the code object, the one with its value, or of a tensor with its address.
    """

    kernel: str
    name: str
    element: str
    entry: int
    is_tensor: bool


class Variables(NamedTuple):
    """The names of the source in a code object. entries: of each kernel, the arguments that its parameters have."""

    variables: tuple[Variable, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    entries: Mapping[str, int] = {}


def with_labels(listing: str) -> str:
    """A listing with a label before each instruction, for `instruction_offsets`."""
    lines = listing.split("\n")
    for index, instruction in reversed(list(enumerate(read_listing(listing).instructions))):
        lines.insert(instruction.line - 1, f"{_LABEL}{index}:")
    return "\n".join(lines)


def instruction_offsets(obj: bytes) -> list[int]:
    """The offsets in `.text` of the instructions of a listing that was assembled `with_labels`."""
    found = {name: value for name, value in read_symbols(obj).items() if name.startswith(_LABEL)}
    return [found[f"{_LABEL}{index}"] for index in range(len(found))]


def read_variables(hsaco: bytes, offsets: Sequence[int]) -> tuple[Variable, ...]:
    """The variables that the debug information of a code object describes; LLVM leaves out what is optimised out.

    offsets: of the instructions in `.text`, in order.
    """
    from elftools.elf.elffile import ELFFile  # which only debuggers need

    elf: Any = ELFFile(io.BytesIO(hsaco))
    text = elf.get_section_by_name(".text")["sh_addr"]
    index_at = {text + offset: index for index, offset in enumerate(offsets)}
    dwarf = elf.get_dwarf_info()
    return tuple(variable for unit in dwarf.iter_CUs() for variable in _of_unit(dwarf, unit, index_at))


def _of_unit(dwarf: Any, unit: Any, index_at: dict[int, int]) -> Iterator[Variable]:
    for function in unit.iter_DIEs():
        if function.tag != "DW_TAG_subprogram":
            continue
        for die in function.iter_children():
            if die.tag == "DW_TAG_variable" and "DW_AT_type" in die.attributes:
                yield _variable(dwarf, unit, function, die, index_at)


def _variable(dwarf: Any, unit: Any, function: Any, die: Any, index_at: dict[int, int]) -> Variable:
    places = tuple(_places(dwarf, unit, function, die, index_at))
    return replace(variable_without_places(_text(function, "DW_AT_name"), _text(die, "DW_AT_name")), places=places)


def variable_without_places(kernel: str, title: str) -> Variable:
    """A variable by its name in DWARF, which is optimised out everywhere.

    >>> variable_without_places("gemm_0", "gemm:acc 4xf32")
    Variable(kernel='gemm_0', function='gemm', name='acc', element='f32', elements=4, places=())
    """
    name, _, shape = title.partition(" ")
    elements, _, element = shape.partition("x")
    function, _, own = name.partition(":")
    return Variable(kernel, function, own, element, int(elements), ())


def _text(die: Any, attribute: str) -> str:
    return str(die.attributes[attribute].value.decode()) if attribute in die.attributes else ""


def _places(dwarf: Any, unit: Any, function: Any, die: Any, index_at: dict[int, int]) -> Iterator[Place]:
    from elftools.dwarf.dwarf_expr import DWARFExprParser
    from elftools.dwarf.locationlists import LocationExpr, LocationParser

    low = function.attributes["DW_AT_low_pc"].value
    high = low + function.attributes["DW_AT_high_pc"].value
    if "DW_AT_const_value" in die.attributes:
        value = die.attributes["DW_AT_const_value"].value
        constant = ("implicit_value", (0, bytes(value))) if isinstance(value, list | bytes) else ("consts", (value,))
        yield from _between(low, high, ((0, (constant,)),), index_at)
    if "DW_AT_location" not in die.attributes:
        return
    expressions = DWARFExprParser(unit.structs)
    found: Any = LocationParser(dwarf.location_lists()).parse_from_attribute(
        die.attributes["DW_AT_location"], unit["version"], die
    )
    if isinstance(found, LocationExpr):
        yield from _between(low, high, _pieces(expressions.parse_expr(found.loc_expr)), index_at)
        return
    base = unit.get_top_DIE().attributes["DW_AT_low_pc"].value
    for entry in found:
        if hasattr(entry, "base_offset"):
            base = entry.base_offset
        elif hasattr(entry, "loc_expr"):
            added = 0 if entry.is_absolute else base
            pieces = _pieces(expressions.parse_expr(entry.loc_expr))
            yield from _between(entry.begin_offset + added, entry.end_offset + added, pieces, index_at)


def _between(
    start: int, stop: int, pieces: tuple[tuple[int, tuple[Operation, ...]], ...], index_at: dict[int, int]
) -> Iterator[Place]:
    inside = [index for address, index in index_at.items() if start <= address < stop]
    if inside:
        yield Place(min(inside), max(inside) + 1, pieces)


def _pieces(operations: Sequence[Any]) -> tuple[tuple[int, tuple[Operation, ...]], ...]:
    pieces: list[tuple[int, tuple[Operation, ...]]] = []
    pending: list[Operation] = []
    for operation in operations:
        name = operation.op_name.removeprefix("DW_OP_")
        if name == "piece":
            pieces.append((operation.args[0], tuple(pending)))
            pending = []
        else:
            pending.append(_operation(name, operation.args))
    return tuple(pieces) if pieces else ((0, tuple(pending)),)


def _operation(name: str, args: Sequence[Any]) -> Operation:
    if name == "implicit_value":
        return name, (0, bytes(args[-1]))
    for prefix in ("reg", "breg"):
        rest = name.removeprefix(prefix)
        if name.startswith(prefix) and (rest == "x" or rest.isdigit()):
            number, offset = (args[0], args[1:]) if rest == "x" else (int(rest), args)
            return ("register" if prefix == "reg" else "register_plus"), (number, *offset)
    return name, tuple(args)
