"""Artifacts in files: compiled here, loaded and launched elsewhere, without the program that they come from.

    artifact = flyc.compile(launcher, flyc.TensorSpec(fx.Float16, 2), fx.Int32, arch="gfx942")
    flyc.save(artifact, "launcher.flydsl")
    flyc.load("launcher.flydsl")(tensor, 3)

A pickled artifact is the same bytes. A file has the launcher's host code and code object, what the views show, and its
parameters. It is read as data, but what it launches is run: load only files whose author you trust, as with any
program.
"""

from __future__ import annotations

import ast
import copyreg
import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from flydsl.compiler.arguments.argument import (
    ANYWHERE,
    STREAM,
    Argument,
    ConstantArgument,
    PointerArgument,
    ScalarArgument,
    TensorArgument,
    pointer_argument,
    scalar_argument,
    tensor_argument,
)
from flydsl.compiler.arguments.signature import Parameter, Signature
from flydsl.compiler.artifact import CompiledArtifact
from flydsl.compiler.caching.stored import from_record, to_record
from flydsl.compiler.jit_argument import adapt
from flydsl.compiler.user_error import user_facing
from flydsl.dialect.location import argument_error
from flydsl.errors import FlyError, SourceLocation
from flydsl.expr import numeric
from flydsl.expr.numeric import Numeric
from flydsl.expr.typing import Constexpr, Pointer, Stream, Tensor
from flydsl.layout.notation import parse
from flydsl.system.disk_cache import packed, unpacked

_MAGIC = b"flydsl artifact 1\n"
_KINDS: dict[str, type | None] = {"": None, **{kind.__name__: kind for kind in (Constexpr, Pointer, Stream, Tensor)}}


class _CompiledIn:
    """A Constexpr value that a file cannot hold. A call cannot give it again."""

    def __repr__(self) -> str:
        return "a value that is compiled in and cannot be given again"


_COMPILED_IN = _CompiledIn()


@user_facing
def save(artifact: CompiledArtifact, path: str | os.PathLike[str]) -> None:
    """Write an artifact to a file, whole or not at all, for `load`, in another process or on another machine.

    Raises ArgumentError for what is no artifact or cannot be written - a launcher that takes values of the program's
    own classes -, and for a folder that does not exist; OSError.
    """
    if not isinstance(artifact, CompiledArtifact):
        raise argument_error(f"save takes an artifact, not {artifact!r}", "make one with flyc.compile(launcher, ...)")
    content, place = to_bytes(artifact), place_to_write(path)
    descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@user_facing
def load(path: str | os.PathLike[str]) -> CompiledArtifact:
    """The artifact that `save` wrote to a file. Raises ArgumentError for other files, OSError."""
    return from_bytes(path_of(path).read_bytes(), os.fspath(path))


def path_of(path: object) -> Path:
    """A path that the user gave. Raises ArgumentError for anything else."""
    if not isinstance(path, str | os.PathLike):
        raise argument_error(f"path must be a str or a path, got {path!r}", 'pass "scale.flydsl", for example')
    return Path(path)


def place_to_write(path: object) -> Path:
    """The path of a file to be written, whose folder exists. Raises ArgumentError."""
    place = path_of(path)
    if not place.parent.is_dir():
        raise argument_error(f"{place}: there is no folder {place.parent} to write it to", "make the folder first")
    return place


def to_bytes(artifact: CompiledArtifact) -> bytes:
    """The content of an artifact's file."""
    signature, arguments = artifact.pipeline.signature, artifact.pipeline.arguments
    record = {
        **to_record(artifact),
        "place": [signature.location.file, signature.location.line],
        "positional": signature.positional,
        "parameters": [_of_parameter(p, a) for p, a in zip(signature.parameters, arguments, strict=True)],
    }
    return _MAGIC + packed(record)


def from_bytes(content: bytes, name: str = "these bytes") -> CompiledArtifact:
    """The artifact of a file's content. name: for errors."""
    record = unpacked(content[len(_MAGIC) :]) if content.startswith(_MAGIC) else None
    found = None if record is None else _artifact(record)
    if found is None:
        raise argument_error(
            f"{name}: this is not a complete artifact of this version of flydsl", "compile and save it again"
        )
    return found


copyreg.pickle(CompiledArtifact, lambda artifact: (from_bytes, (to_bytes(artifact),)))


def _artifact(record: dict[str, Any]) -> CompiledArtifact | None:
    try:
        pairs = [_to_parameter(data) for data in record["parameters"]]
        place = replace(SourceLocation(*record["place"]), is_claimed=True)
        if record["positional"] not in range(len(pairs) + 1):
            return None
        signature = Signature.of_parameters(record["name"], [p for p, _ in pairs], record["positional"], place)
    except (KeyError, TypeError, ValueError, AttributeError, FlyError):
        return None
    return from_record(record, tuple(argument for _, argument in pairs), signature)


def _of_parameter(parameter: Parameter, argument: Argument) -> list[Any]:
    kind = parameter.kind
    kind_name = "" if kind is None else kind.__name__
    if kind is not None and kind_name not in _KINDS and not issubclass(kind, Numeric):
        raise argument_error(
            f"{parameter.name} is a {kind_name}: a launcher that takes values of a class of the program cannot be "
            "saved",
            "pass the numbers in it",
        )
    default = parameter.default
    given = _of_value(default) if isinstance(default, (int, float, str, bool, type(None))) else None
    if isinstance(default, Stream) and default.value is None:
        given = ["stream"]
    return [parameter.name, kind_name, _of_argument(parameter, argument), given]


def _to_parameter(data: list[Any]) -> tuple[Parameter, Argument]:
    name, kind_name, argument_data, default_data = data
    kind = _KINDS[kind_name] if kind_name in _KINDS else _numeric(kind_name)
    what, *rest = argument_data
    if what == "constant":
        value = _to_value(rest[0])
        parameter = Parameter(name, Constexpr, default=value)
        return parameter, adapt(parameter, value)[0]
    given = {} if default_data is None else {"default": _to_value(default_data)}
    return Parameter(name, kind, **given), _to_argument(what, rest)


def _of_argument(parameter: Parameter, argument: Argument) -> list[Any]:
    match argument:
        case TensorArgument():
            return ["tensor", argument.element, str(argument.layout)]
        case PointerArgument():
            return ["pointer", argument.element, argument.align]
        case ScalarArgument():
            return ["scalar", argument.kind.__name__]
        case ConstantArgument():
            return ["constant", _of_value(argument[1])]
    if argument is STREAM:
        return ["stream"]
    raise argument_error(
        f"{parameter.name} is {argument.describe()}: a launcher that takes it cannot be saved",
        "pass what it holds as tensors, numbers and fx.Constexpr parameters",
    )


def _to_argument(what: str, rest: list[Any]) -> Argument:
    match what, rest:
        case "tensor", [str(element), str(layout)]:
            return tensor_argument(element, parse(layout), ANYWHERE)
        case "pointer", [str(element), align]:
            return pointer_argument(element, ANYWHERE, align)
        case "scalar", [str(name)]:
            return scalar_argument(_numeric(name))
        case "stream", []:
            return STREAM
    raise ValueError(f"no argument is {what!r}")


def _numeric(name: str) -> type[Numeric]:
    found = getattr(numeric, name)
    if not (isinstance(found, type) and issubclass(found, Numeric)):
        raise ValueError(f"{name} is not a type of numbers")
    return found


def _of_value(value: Any) -> list[Any]:
    """A value as data: a plain one as text, a type of the DSL by its name; of others, that they are compiled in."""
    if isinstance(value, type) and issubclass(value, Numeric):
        return ["type", value.__name__] if hasattr(numeric, value.__name__) else ["compiled in"]
    if type(value) is float:
        return ["number", value.hex()]
    return ["plain", repr(value)] if _is_plain(value) else ["compiled in"]


def _plain_value(text: str) -> Any:
    """The value of a literal. ValueError for other text, and for one that is nested too deeply to be read."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"no literal: {text[:40]!r}") from error


def _to_value(data: list[Any]) -> Any:
    match data:
        case ["type", str(name)]:
            return _numeric(name)
        case ["number", str(digits)]:
            return float.fromhex(digits)
        case ["plain", str(text)]:
            return _plain_value(text)
        case ["stream"]:
            return Stream(None)
        case ["compiled in"]:
            return _COMPILED_IN
    raise ValueError(f"no value is {data!r}")


def _is_plain(value: Any) -> bool:
    """True for numbers but floats, text, None, and tuples of them."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in (int, bool, str, bytes, type(None))
