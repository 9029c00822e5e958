"""The common part of `@flyc.jit` and `@flyc.kernel`: a Python function and its signature."""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
import types
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from flydsl.compiler.arguments.signature import Signature, annotations_of, read_annotations
from flydsl.dialect.location import argument_error
from flydsl.errors import TraceError
from flydsl.errors.missing_attributes import Explained
from flydsl.errors.places import definition_location, user_frame
from flydsl.system.torch_compile import untraced

_Self = TypeVar("_Self", bound="DecoratedFunction")


class DecoratedFunction(Explained):
    """A Python function that is traced instead of run. function: as the user wrote it."""

    decorator: ClassVar[str]

    def __init__(self, function: Callable[..., Any]) -> None:
        if not isinstance(function, types.FunctionType):
            raise argument_error(
                f"{self.decorator} must decorate a function, got {function!r}",
                f"write {self.decorator} right above `def`, below other decorators",
            )
        if function.__code__.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise TraceError(
                f"{function.__name__} is `async`, which the device cannot run",
                at=definition_location(function.__code__),
                hint=f"write `def {function.__name__}`",
            )
        frame = user_frame() if "<locals>" in function.__qualname__ else None
        if frame is not None:
            read_annotations(function, frame.f_locals)
        functools.update_wrapper(self, function)  # type: ignore[arg-type] # for its name and docstring
        self.function = function

    def __repr__(self) -> str:
        names = ", ".join(inspect.signature(self.function).parameters)
        return f"<{self.decorator.removeprefix('@')} {self.function.__name__}({names})>"

    @property
    def _func(self) -> types.FunctionType:
        """FlyDSL's name for `function`; programs name their kernels by `kernel._func.__name__ = "..."`."""
        return self.function

    func = _func

    def options(self) -> tuple[Any, ...]:
        """The options of the decorator that decide what the function traces."""
        return ()

    def settings(self) -> dict[str, Any]:
        """The attributes that a copy in another process takes over."""
        return {}

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle it by name if that can be imported, otherwise with its source, which tracing needs.

        The latter is for functions of notebooks and of `__main__`, and needs cloudpickle.
        """
        if _is_importable(self):
            return self.function.__qualname__
        file = self.function.__code__.co_filename
        sent = type(self), self.function, annotations_of(self.function), self.settings(), file, linecache.getlines(file)
        return _received, sent

    @functools.cached_property
    def signature(self) -> Signature:
        """Its parameters; read at the first call, when the names in its annotations are defined."""
        return Signature(self.function)

    def __getitem__(self, configuration: Any) -> Any:
        """Raise an error: `kernel[grid]` is how CUDA and Triton launch, not FlyDSL."""
        raise argument_error(
            f"{self.function.__name__}[...] launches nothing",
            "call a kernel in a @flyc.jit function, as kernel(...).launch(grid=..., block=...), and that function",
        )

    def __get__(self: _Self, instance: object, owner: type | None = None) -> Any:
        """The function itself if found through its class, and a `BoundFunction` if found through an object."""
        return self if instance is None else BoundFunction(self, instance)


def _is_importable(value: DecoratedFunction) -> bool:
    """True if another process that imports the module finds this very object by its name."""
    module, name = value.function.__module__, value.function.__qualname__
    if module == "__main__" or "<locals>" in name:
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _in_file(code: types.CodeType, file: str) -> types.CodeType:
    """The code of a function and those inside it, with a file name: cloudpickle leaves it out from version 3.1.3 on."""
    constants = (_in_file(value, file) if isinstance(value, types.CodeType) else value for value in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(constants))


def _received(
    kind: type[_Self],
    function: types.FunctionType,
    annotations: dict[str, Any],
    settings: dict[str, Any],
    file: str,
    lines: list[str],
) -> _Self:
    """The function that `DecoratedFunction.__reduce__` has sent. Its file may be missing here, or have changed."""
    if file not in linecache.cache:
        linecache.cache[file] = sum(map(len, lines)), None, lines, file
    function.__code__ = _in_file(function.__code__, file)
    function.__annotations__ = annotations
    made = kind(function)
    vars(made).update(settings)
    return made


_LAUNCHED = "pass it where the kernel is launched: kernel(...).launch(grid=..., block=..., smem=...)"
_HINTED = 'pass compiler hints as flyc.compile[{"waves_per_eu": 2}](launcher, ...)'
_OPTIONS = {
    "arch": "compile for another GPU with flyc.compile(launcher, ..., arch=...), or set FLYDSL_GPU_ARCH",
    **dict.fromkeys(("grid", "block", "threads", "num_warps", "block_size", "smem", "cluster"), _LAUNCHED),
    **dict.fromkeys(("waves_per_eu", "maxnreg", "fastmath", "llvm_options", "num_stages"), _HINTED),
}


def refuse_options(decorator: str, options: dict[str, Any]) -> None:
    """Raise ArgumentError for options that a decorator does not have."""
    for name in options:
        takes = "it takes known_block_size and name" if decorator == "@flyc.kernel" else "it stands alone above the def"
        raise argument_error(f"{decorator} has no option {name!r}", _OPTIONS.get(name, takes))


class BoundFunction:
    """A launcher or kernel as a method. The object is known at compile time: code is compiled for each one.

    A launcher keeps the objects that it was compiled for.
    """

    def __init__(self, function: DecoratedFunction, instance: object) -> None:
        self.bound, self.instance = function, instance
        functools.update_wrapper(self, function)  # type: ignore[arg-type] # for its name and docstring

    @untraced
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with the object as first argument."""
        __tracebackhide__ = True
        return self.bound(self.instance, *args, **kwargs)  # type: ignore[operator]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.bound, name)
        takes_arguments = name in ("compile", "lower", "simulate")
        return functools.partial(found, self.instance) if takes_arguments else found

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundFunction, (self.bound, self.instance)

    def __repr__(self) -> str:
        return f"<{self.bound!r} of {self.instance!r}>"
