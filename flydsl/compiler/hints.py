"""Compiler hints of a program: `with CompilationContext.compile_hints({...}):`.

| hint | meaning |
|---|---|
| `waves_per_eu` | waves per SIMD that LLVM allocates registers for; a kernel's own `value_attrs` win |
| `maxnreg` | VGPRs that a kernel may use at most |
| `llvm_options` | {name: value} of LLVM's command line options, for this compilation |
| `fast_fp_math` | floats: contract, approximate functions, reciprocals for divisions, no sign of zero |
| `unsafe_fp_math` | the same, and sums in any order. Neither assumes that there are no infinities or NaNs |
| `fastmath` | flags of operations on floats that state none: "fast" or `fx.FastMathFlags`; over the two above |
| `check_indices` | True: each access of a tensor by its coordinate asserts that it is in the tensor's shape |
| `check_overflow` | True: each sum, difference and product of signed integers asserts that it does not wrap around |
| `enable_debug_info` | True: line tables stay in the HSACO, as by `FLYDSL_DEBUG_ENABLE_DEBUG_INFO` |

Hints come from the `with` blocks around a call, from the launcher's `compile_hints`, and from `flyc.compile[{...}]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.expr.numbers.fastmath_flags import flag_names
from flydsl.system.interrupts import holding

_NUMBERS = ("waves_per_eu", "maxnreg")
_FLAGS = ("fast_fp_math", "unsafe_fp_math", "enable_debug_info", "check_indices", "check_overflow")
_FAST = "contract,afn,arcp,nsz"
_UNSAFE = f"{_FAST},reassoc"
_KNOWN = (*_NUMBERS, *_FLAGS, "fastmath", "llvm_options")

_current: ContextVar[Mapping[str, Any]] = ContextVar("flydsl_compile_hints", default=MappingProxyType({}))


@dataclass(frozen=True)
class CompileHints:
    """Checked hints. Equal hints make equal code. None: not given."""

    waves_per_eu: int | None = None
    maxnreg: int | None = None
    debug_info: bool = False
    fastmath: str = "none"
    llvm_options: tuple[str, ...] = ()
    check_indices: bool = False
    check_overflow: bool = False

    def mark(self, function: ir.OpView) -> None:
        """Put the hints on a kernel. Its own `rocdl.waves_per_eu` wins."""
        if self.waves_per_eu is not None and "rocdl.waves_per_eu" not in function.attributes:
            i32 = ir.IntegerType.get_signless(32)
            function.attributes["rocdl.waves_per_eu"] = ir.IntegerAttr.get(i32, self.waves_per_eu)
        if self.maxnreg is not None:
            own = list(function.attributes["passthrough"]) if "passthrough" in function.attributes else []
            limit = ir.ArrayAttr.get([ir.StringAttr.get(text) for text in ("amdgpu-num-vgpr", str(self.maxnreg))])
            function.attributes["passthrough"] = ir.ArrayAttr.get([*own, limit])


@contextmanager
def compile_hints(hints: Mapping[str, Any]) -> Iterator[None]:
    """Compile launchers called inside the `with` block with these hints, and those of the blocks around it."""
    _checked(hints)
    with holding(_current, merged(hints, _current.get())):
        yield


def merged(hints: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    """Hints over those around them; options of LLVM are merged one by one."""
    if "llvm_options" not in hints or not isinstance(hints["llvm_options"], Mapping):
        return {**around, **hints}
    options = {**(around.get("llvm_options") or {}), **hints["llvm_options"]}
    return {**around, **hints, "llvm_options": options}


def current_hints() -> dict[str, Any]:
    """The hints of the surrounding `with` blocks; inner blocks override outer ones."""
    return dict(_current.get())


def hints_for(own: Mapping[str, Any]) -> CompileHints:
    """The hints for a compilation: the launcher's own, overridden by those of the surrounding `with` blocks."""
    return _checked(all_hints(own)) if own or _current.get() else NO_HINTS


def all_hints(own: Mapping[str, Any]) -> dict[str, Any]:
    """The hints for a compilation, as they were given."""
    return merged(_current.get(), own)


def _checked(hints: Mapping[str, Any]) -> CompileHints:
    for name, value in hints.items():
        if name not in _KNOWN:
            raise argument_error(f"there is no compile hint {name!r}", f"there are {', '.join(_KNOWN)}")
        if name in _NUMBERS and value is not None and (type(value) is not int or value < 1):
            raise argument_error(
                f"the compile hint {name} must be a positive integer, got {value!r}",
                "pass 2, for example, or omit the hint to let the compiler choose",
            )
    options = hints.get("llvm_options") or {}
    if not isinstance(options, Mapping):
        raise argument_error(
            f"the compile hint llvm_options must be a dict of names and values, got {options!r}",
            'pass {"enable-post-misched": False}, for example',
        )
    return CompileHints(
        hints.get("waves_per_eu"),
        hints.get("maxnreg"),
        bool(hints.get("enable_debug_info")),
        _fastmath(hints),
        tuple(f"--{name}={_option_text(value)}" for name, value in sorted(options.items())),
        bool(hints.get("check_indices")),
        bool(hints.get("check_overflow")),
    )


def _fastmath(hints: Mapping[str, Any]) -> str:
    if hints.get("fastmath") is not None:
        return flag_names(hints["fastmath"])
    return _UNSAFE if hints.get("unsafe_fp_math") else _FAST if hints.get("fast_fp_math") else "none"


def _option_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


NO_HINTS = CompileHints()
