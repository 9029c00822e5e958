"""Launchers as custom operators of torch, for eager mode and inside `torch.compile`.

add = flyc.custom_op("demo::add", vector_add, outputs={"C": lambda A, B, n: torch.empty_like(A)})
C = add(A, B, n)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flydsl.compiler.arguments.signature import Parameter
from flydsl.compiler.jit_function import JitFunction
from flydsl.compiler.user_error import user_facing
from flydsl.dialect.location import argument_error
from flydsl.errors.places import treat_as_library
from flydsl.expr.numeric import Boolean, Numeric
from flydsl.expr.typing import Constexpr, Pointer, Stream, Tensor

if TYPE_CHECKING:
    from torch.library import CustomOpDef

# Constexpr[T] -> the type of torch's schemas.
_CONSTEXPR_TYPES = {int: "SymInt", float: "float", bool: "bool", str: "str"}


@user_facing
def custom_op(
    name: str,
    launcher: JitFunction,
    *,
    mutates_args: Iterable[str] = (),
    outputs: Mapping[str, Callable[..., Any]] | None = None,
    **fixed: Any,
) -> CustomOpDef:
    """Register a launcher as a custom operator of torch: `name` is "namespace::name".

    mutates_args: the tensors that it writes and that the caller passes, as in `torch.library.custom_op`.
    outputs: the tensors that it writes and that the operator returns; a function makes each from the operator's
    arguments. It is also the operator's fake kernel: what it makes of sizes alone is what `torch.compile` knows.
    fixed: values of other parameters. Streams are torch's current ones.

    The operator takes the launcher's remaining parameters, by the same names. Gradients: `register_autograd` of the
    result. Raises ArgumentError for a parameter that is annotated with no type of torch's, or is unknown.
    """
    import torch

    treat_as_library(str(Path(torch.__file__).parent))  # what calls the launcher for the user
    if not isinstance(launcher, JitFunction):
        raise argument_error(f"custom_op takes a @flyc.jit function, not {launcher!r}", "decorate it: @flyc.jit")
    if not isinstance(name, str) or name.count("::") != 1:
        raise argument_error(
            f'the name of a custom_op must be "namespace::name", got {name!r}', 'pass "mine::scale", for example'
        )
    made, written = dict(outputs or {}), tuple(mutates_args)
    _check_names(launcher, [*made, *written, *fixed])
    taken = [p for p in launcher.signature.parameters if p.name not in (*made, *fixed) and p.kind is not Stream]
    for output, make in made.items():
        _check_maker(output, make, [parameter.name for parameter in taken])
    schema = f"({', '.join(_argument(p, p.name in written) for p in taken)}) -> {_result(len(made))}"

    def allocate(*args: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments by name, where torch omits those that equal their defaults; the outputs by name."""
        given = (*args, *[p.default for p in taken[len(args) :]])
        allocated = {output: make(*given) for output, make in made.items()}
        return dict(zip([p.name for p in taken], given, strict=True)), allocated

    def run(*args: Any) -> Any:
        given, allocated = allocate(*args)
        launcher(**given, **allocated, **fixed, **_streams(launcher))
        return _returned(allocated)

    operator = torch.library.custom_op(name, run, mutates_args=written, schema=schema)
    operator.register_fake(lambda *args: _returned(allocate(*args)[1]))
    return operator


def _check_maker(output: str, make: Callable[..., Any], taken: list[str]) -> None:
    """Raise ArgumentError unless the function takes the operator's arguments, as far as Python knows its signature."""
    try:
        inspect.signature(make).bind(*taken)
    except ValueError:
        return
    except TypeError as error:
        raise argument_error(
            f"custom_op: the function for {output} gets {', '.join(taken)}: {error}",
            f"outputs={{{output!r}: lambda {', '.join(taken)}: torch.empty(...)}}",
        ) from None


def _check_names(launcher: JitFunction, names: list[str]) -> None:
    known = [parameter.name for parameter in launcher.signature.parameters]
    for name in names:
        if name not in known or names.count(name) > 1:
            reason = "is named twice" if name in known else "is not a parameter"
            raise argument_error(f"custom_op: {name} {reason}", f"the parameters are {', '.join(known)}")


def _streams(launcher: JitFunction) -> dict[str, Stream]:
    return {parameter.name: Stream(None) for parameter in launcher.signature.parameters if parameter.kind is Stream}


def _argument(parameter: Parameter, is_written: bool) -> str:
    """A parameter in the syntax of torch's schemas."""
    default = parameter.default
    shown = f"={default!r}" if type(default) in (int, float, bool) else f'="{default}"' if type(default) is str else ""
    alias = f"({parameter.name}!)" if is_written else ""
    return f"{_type(parameter)}{alias} {parameter.name}{shown}"


def _type(parameter: Parameter) -> str:
    kind = parameter.kind
    found = None
    if kind is Tensor or kind is Pointer:
        found = "Tensor"
    elif kind is Constexpr and parameter.constexpr_type is not None:
        found = _CONSTEXPR_TYPES.get(parameter.constexpr_type)
    elif kind is not None and issubclass(kind, Numeric):
        found = "bool" if kind is Boolean else "float" if kind.is_float else "SymInt"
    if found is None:
        raise argument_error(
            f"custom_op: {parameter.name} has no type that torch knows",
            f"annotate it, as fx.Tensor, fx.Int32 or fx.Constexpr[int], or fix its value: {parameter.name}=...",
        )
    return found


def _result(count: int) -> str:
    return "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _returned(allocated: dict[str, Any]) -> Any:
    tensors = tuple(allocated.values())
    return tensors[0] if len(tensors) == 1 else tensors or None
