"""Signatures: what each parameter of a launcher or kernel takes, and how arguments bind to parameters.

Binding a call is on the path of every launch, so a signature is read once and a bind is a few list operations.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace
from typing import Any, get_args, get_origin

from flydsl.dialect.location import argument_error
from flydsl.errors import ArgumentError, SourceLocation, TraceError
from flydsl.errors.places import definition_location, location_of
from flydsl.expr.control_flow.tree import parts
from flydsl.expr.memory.struct_value import StructValue
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Numeric
from flydsl.expr.tracing.operands import FlyValue
from flydsl.expr.typing import (
    Constexpr,
    CopyAtom,
    IntTuple,
    Layout,
    MmaAtom,
    Pointer,
    Stream,
    Tensor,
    TiledCopy,
    TiledMma,
)

_MISSING = inspect.Parameter.empty
# Python's numbers say no more than an argument does: it decides.
_PYTHON_TYPES = (int, float, bool, Any)
_CONTAINERS = (tuple, list, dict, SimpleNamespace)
# Values of the DSL that are known at compile time.
_ATOMS = (CopyAtom, MmaAtom, TiledCopy, TiledMma)


def says_its_key(kind: type) -> bool:
    """True for a class of the program's whose objects are compiled in: they say by `__cache_signature__` what for.

    Those of run time have FlyDSL's other methods (`__get_ir_types__`), too.
    """
    return (
        hasattr(kind, "__cache_signature__")
        and not hasattr(kind, "__get_ir_types__")
        and not issubclass(kind, Numeric | type)
    )


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    kind: `Tensor`, `Pointer`, `Stream`, `Constexpr` or a scalar type; None where the argument decides.
    constexpr_type: T of `Constexpr[T]`, where T is a class.
    part_types: of a container, as its annotation has them: (T1, T2) of `tuple[T1, T2]`, (T, ...) of `list[T]`.
    """

    name: str
    kind: type | None
    constexpr_type: type | None = None
    default: Any = _MISSING
    part_types: tuple[Any, ...] = ()

    @classmethod
    def of(cls, name: str, annotation: Any, default: Any = _MISSING) -> Parameter | None:
        """The parameter of an annotation; None if that is no type of the DSL."""
        if annotation is _MISSING or annotation in _PYTHON_TYPES:
            return cls(name, None, default=default)
        if annotation is Constexpr or get_origin(annotation) is Constexpr:
            (inner,) = get_args(annotation) or (None,)
            known = isinstance(inner, type) and inner is not Any
            return cls(name, Constexpr, inner if known else None, default)
        is_class = isinstance(annotation, type) and get_origin(annotation) is None  # Python 3.10: tuple[int] is a type
        if is_class and issubclass(annotation, Tensor | Pointer | Stream | Numeric | StructValue):
            return cls(name, annotation, default=default)
        if is_class and issubclass(annotation, _ATOMS):
            return cls(name, Constexpr, annotation, default)
        if is_class and says_its_key(annotation):
            return cls(name, Constexpr, annotation, default)
        if annotation in (Layout, IntTuple) or is_own_class(annotation):  # static or not: the argument decides
            return cls(name, None, default=default, part_types=_part_types(annotation))
        return None

    def parts_of(self, container: Any) -> list[tuple[Parameter, Any]]:
        """The parts of a container, each with the parameter that its annotation makes of it.

        A tensor is one by itself, so a `list[fx.Tensor]` may have numbers, too. Raises ArgumentError if a tuple has
        another number of parts than its annotation.
        """
        keys, items = parts(container)
        kinds = self.part_types[:1] * len(items) if self.part_types[1:] == (...,) else self.part_types
        if kinds and len(kinds) != len(items):
            raise argument_error(
                f"{self.name} must be a tuple of {len(kinds)}, got {len(items)} parts",
                "annotate it tuple[T, ...] for any length",
            )
        form = ".{}" if isinstance(container, SimpleNamespace) else "[{!r}]"
        names = [self.name + form.format(key) for key in (range(keys) if isinstance(keys, int) else keys)]
        kinds = tuple(Any if kind is Tensor else kind for kind in kinds) or (Any,) * len(items)
        each = zip(names, kinds, items, strict=True)
        return [(Parameter.of(name, kind) or Parameter(name, None), item) for name, kind, item in each]

    def check_constexpr(self, value: Any) -> None:
        """Raise ArgumentError unless a compile-time argument has its type."""
        if self.constexpr_type is not None and not isinstance(value, self.constexpr_type):
            raise argument_error(
                f"{self.name} must be {self._shown_type()}, got {shown(value)}",
                "such a value is known at compile time: pass one of that type",
            )

    def _shown_type(self) -> str:
        assert self.constexpr_type is not None
        name = self.constexpr_type.__name__
        return name if issubclass(self.constexpr_type, _ATOMS) else f"Constexpr[{name}]"


def is_own_class(annotation: Any) -> bool:
    """True for a container, such as `tuple[fx.Tensor, int]`, and for a class that follows the protocols."""
    kind = get_origin(annotation) or annotation
    if not isinstance(kind, type):
        return False
    follows = hasattr(kind, "__construct_from_ir_values__") and not issubclass(kind, ArithValue | FlyValue)
    return follows or issubclass(kind, _CONTAINERS) or any(own(kind) for own in OWN)


def _part_types(annotation: Any) -> tuple[Any, ...]:
    """`Parameter.part_types` of an annotation; () if it says nothing of parts."""
    kind, given = get_origin(annotation), get_args(annotation)
    if not (isinstance(kind, type) and issubclass(kind, tuple | list | dict)):
        return ()
    return given if issubclass(kind, tuple) else (*given[-1:], ...)


OWN: list[Callable[[type], bool]] = []
"""Others that say whether values of a class are arguments: the registry of launchers' arguments enters itself."""


def shown(value: Any) -> str:
    """A short text for an argument that does not fit."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        return f"{type(value).__module__.partition('.')[0]}.{type(value).__name__} of shape {tuple(value.shape)}"
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({type(value).__name__})"


class Signature:
    """The parameters of a launcher or kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self._code = function.__code__
        self.location = SourceLocation(function.__code__.co_filename, function.__code__.co_firstlineno)
        annotations = annotations_of(function)
        self.parameters = [
            self._parameter(p, annotations.get(p.name, _MISSING))
            for p in inspect.signature(function).parameters.values()
        ]
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        self._prepare(sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds))

    @classmethod
    def of_parameters(
        cls, name: str, parameters: list[Parameter], positional: int, location: SourceLocation
    ) -> Signature:
        """The signature of a function that is not here; `positional` of its parameters can be given by place."""
        made = cls.__new__(cls)
        made.name, made.parameters, made.location = name, parameters, location
        made._prepare(positional)
        return made

    def _prepare(self, positional: int) -> None:
        self.positional = positional
        self._positions = {p.name: i for i, p in enumerate(self.parameters)}
        self._defaults = [p.default for p in self.parameters]
        self._required = len(self.parameters) - next(
            (i for i, default in enumerate(reversed(self._defaults)) if default is _MISSING), len(self.parameters)
        )

    @property
    def location_of_return(self) -> SourceLocation:
        """The place of a `return` with a value; if there is none, that of the function."""
        before = None
        for instruction in dis.get_instructions(self._code):
            if instruction.opname == "RETURN_VALUE" and not (before and before.argrepr == "None"):
                return location_of(self._code, instruction.offset, None)
            before = instruction
        return self.location

    def _parameter(self, parameter: inspect.Parameter, annotation: Any) -> Parameter:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TraceError(
                f"{self.name}: *args and **kwargs cannot be traced",
                at=self._place_of(parameter.name),
                hint="give each argument a parameter",
            )
        name, default = parameter.name, parameter.default
        if name == "self" and annotation is _MISSING:  # the object of a method
            return Parameter(name, Constexpr, default=default)
        made = Parameter.of(name, annotation, default)
        if made is not None:
            return made
        raise TraceError(
            f"{self.name}: parameter {name} is annotated {annotation!r}, which is not a type of the DSL",
            at=self._place_of(name),
            hint="fx.Tensor, fx.Pointer, a scalar such as fx.Int32, fx.Constexpr[int], fx.Stream, or no annotation",
        )

    def _place_of(self, parameter: str) -> SourceLocation:
        """The place where the source names a parameter; the function's if it is not found."""
        file, first = self.location.file, self.location.line
        named = re.compile(rf"(?<=[(,\s*]){re.escape(parameter)}\b")
        source = linecache.getlines(file)[first - 1 :]
        start = next((i for i, line in enumerate(source) if line.lstrip().startswith("def ")), len(source))
        for number, line in enumerate(source[start:], first + start):
            if match := named.search(line):
                column, end = (len(line[:i].encode()) for i in match.span())
                return SourceLocation(file, number, column, end)
        return self.location

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments in parameter order, with defaults. Raises ArgumentError where a call would raise TypeError."""
        if len(args) > self.positional:
            places = "positional arguments" if self.positional < len(self.parameters) else "arguments"
            raise self._wrong(f"takes {self.positional} {places}, got {len(args)}")
        values = [*args, *self._defaults[len(args) :]]
        if not kwargs and len(args) >= self._required:
            return values
        for name, value in kwargs.items():
            position = self._positions.get(name)
            if position is None:
                raise self._wrong(f"has no parameter {name!r}")
            if position < len(args):
                raise self._wrong(f"got {name!r} twice")
            values[position] = value
        if any(value is _MISSING for value in values[len(args) :]):
            missing = [p.name for p, value in zip(self.parameters, values, strict=True) if value is _MISSING]
            raise self._wrong(f"misses {', '.join(missing)}")
        return values

    def call(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        """Call a function of this signature with values in parameter order."""
        count = self.positional
        keywords = {p.name: value for p, value in zip(self.parameters[count:], values[count:], strict=True)}
        return function(*values[:count], **keywords)

    def _wrong(self, what: str) -> ArgumentError:
        names = ", ".join(p.name for p in self.parameters)
        return argument_error(f"{self.name} {what}", f"its parameters are ({names})")


def read_annotations(function: FunctionType, names: Mapping[str, Any]) -> None:
    """Turn a function's annotations that are text into objects, where these names and its module's are all they need.

    Those that need more stay text, for `annotations_of`. `names` are the locals where the function is defined: without
    `from __future__ import annotations`, Python would look there too.
    """
    for parameter, text in function.__annotations__.items():
        if isinstance(text, str):
            with contextlib.suppress(NameError, AttributeError, SyntaxError):
                function.__annotations__[parameter] = eval(text, function.__globals__, dict(names))


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations as objects, also where `from __future__ import annotations` made them strings."""
    names = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = {}
    for name, cell in names.items():
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # a name of the enclosing function that is not assigned yet
            continue
    try:
        return inspect.get_annotations(function, locals=cells, eval_str=True)
    except (NameError, AttributeError, SyntaxError) as error:
        raise TraceError(
            f"{function.__name__}: an annotation cannot be read: {getattr(error, 'message', error)}",
            at=definition_location(function.__code__),
            hint="fx.Tensor, fx.Pointer, a scalar such as fx.Int32, fx.Constexpr[int], fx.Stream, or no annotation",
        ) from None
