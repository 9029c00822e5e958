"""A code object of any origin, its kernels, which are launched on the simulator, and the launches as they are made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from flydsl.arch.launch_limits import Dim3
from flydsl.binary.arguments import bytes_of, kinds_of, new_memory
from flydsl.codegen import CodeObject, Kernel
from flydsl.compiler.user_error import user_facing
from flydsl.errors import ArgumentError, FlyError, LaunchError, MissingName, did_you_mean
from flydsl.hsaco import KernelArg
from flydsl.simulator.counters import LaunchCounters
from flydsl.simulator.counters.session import counted_into
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.loading import LoadedKernel, named
from flydsl.simulator.timing import Trace
from flydsl.simulator.timing.session import traced_into
from flydsl.system.interrupts import holding

if TYPE_CHECKING:
    from flydsl.simulator import Simulation

_MANGLED = re.compile(r"_Z(\d+)(\w+)")


@dataclass(frozen=True, eq=False)
class BinaryModule:
    """A code object and its listing. A kernel is an attribute, and is called: `module.add(x, y, n, grid=4, block=256)`.

    origin: what made it, for people. texts: what it was compiled from, level by level, by name.
    argument_names: of the kernels by symbol, where the code object does not have them.
    unlisted: why there is no listing, if there is none: then only the kernels and their resources are known.
    """

    code: CodeObject
    origin: str
    texts: Mapping[str, str] = field(default_factory=dict)
    unlisted: FlyError | None = None
    argument_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def isa(self) -> str:
        """The assembly. Raises CompileError if there is none."""
        self.require_listing()
        return self.code.isa

    def require_listing(self) -> None:
        """Raise CompileError, with what to do, if there is no listing."""
        if self.unlisted is not None:
            raise type(self.unlisted)(self.unlisted.message, hint=self.unlisted.hint)

    @property
    def hsaco(self) -> bytes:
        """The code object's bytes."""
        return self.code.hsaco

    @cached_property
    def kernels(self) -> Mapping[str, BinaryKernel]:
        """The kernels by name; those of C++ under the name that the source has, where there is one of it."""
        symbols = [kernel.name for kernel in self.code.kernels]
        plain = [demangled(symbol) for symbol in symbols]
        names = [name if plain.count(name) == 1 else symbol for name, symbol in zip(plain, symbols, strict=True)]
        return {
            name: BinaryKernel(self, name, resources) for name, resources in zip(names, self.code.kernels, strict=True)
        }

    def kernel(self, name: str) -> BinaryKernel:
        """The kernel of a name, as in the source or mangled. Raises ArgumentError if there is none."""
        for kernel in self.kernels.values():
            if name in (kernel.name, kernel.symbol):
                return kernel
        raise ArgumentError(
            f"there is no kernel {name!r} in this module ({self.origin})",
            hint=f"{did_you_mean(name, self.kernels)}it has {', '.join(self.kernels) or 'none'}",
        )

    def __getattr__(self, name: str) -> BinaryKernel:
        if name.startswith("_") or "code" not in self.__dict__:
            raise AttributeError(name)
        try:
            return self.kernel(name)
        except ArgumentError as error:
            raise MissingName(error.message, hint=error.hint) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.kernels]

    @cached_property
    def program(self) -> Program:
        """The decoded code, ready for the simulator. Raises ListingError for what it refuses, CompileError without a
        listing."""
        self.require_listing()
        return Program.load(self.code.hsaco, self.code.listing)

    @cached_property
    def argument_kinds(self) -> Mapping[str, tuple[str, ...]]:
        """LLVM's types of the parameters of each kernel, by symbol, where its LLVM IR is known."""
        return kinds_of(self.code.llvm_ir)

    def __repr__(self) -> str:
        return f"<BinaryModule of {self.origin} for {self.code.arch.name}: {', '.join(self.kernels)}>"


def demangled(symbol: str) -> str:
    """A C++ function's name as in the source; other symbols stay what they are.

    >>> demangled("_Z3addPKfPffi"), demangled("add")
    ('add', 'add')
    """
    found = _MANGLED.match(symbol)
    return found[2][: int(found[1])] if found and len(found[2]) >= int(found[1]) else symbol


@dataclass(frozen=True, eq=False)
class BinaryKernel:
    """A kernel of a code object. name: as in the source. resources: its registers, LDS and occupancy."""

    module: BinaryModule
    name: str
    resources: Kernel

    @property
    def symbol(self) -> str:
        """The name in the code object."""
        return self.resources.name

    @property
    def parameters(self) -> tuple[KernelArg, ...]:
        """The arguments as the code object describes them."""
        explicit = [arg for arg in self.resources.info.args if not arg.kind.startswith("hidden_")]
        return named(explicit, self.module.argument_names.get(self.symbol, ()))

    @user_facing
    def __call__(self, *arguments: Any, grid: Any = None, block: Any = None, smem: int = 0) -> BinaryLaunch:
        """Launch on the simulator, and wait. grid counts workgroups, block threads: an integer, or up to three; needed.

        arguments: one for each of `parameters`. A torch tensor on the CPU or a numpy array for a pointer, which the
        kernel reads and writes in place; None for a null pointer; a number, numpy number or bytes for a value, and
        `flydsl.simulator.Struct` for a struct. A Python number becomes the parameter's type where the LLVM IR is
        known (HIP, OpenCL C), otherwise an int of 4 or 8 bytes, or a float.

        Raises ArgumentError, LaunchError, and SimulatorError for what the program does wrong.
        """
        made = BinaryLaunch(self, arguments, dim3("grid", grid), dim3("block", block), smem)
        with _recorded(made):
            self._loaded.launch(made.grid, made.block, arguments, smem)
        return made

    @user_facing
    def simulate(
        self, *arguments: Any, grid: Any = None, block: Any = None, smem: int = 0, workgroup: Dim3 = (0, 0, 0)
    ) -> Simulation:
        """The same launch, instruction by instruction; see `flydsl.simulator.Simulation`."""
        sizes = dim3("grid", grid), dim3("block", block)
        return self._loaded.simulate(*sizes, arguments, smem, workgroup=workgroup)

    @cached_property
    def _loaded(self) -> LoadedKernel:
        """The kernel with what torch's tensors and LLVM's types add to its arguments."""
        kinds = self.module.argument_kinds.get(self.symbol, ())
        offsets = (parameter.offset for parameter in self.parameters)
        return LoadedKernel(
            self.module.program,
            self.symbol,
            partial(bytes_of, dict(zip(offsets, kinds, strict=False))),
            new_memory,
            self.name,
            self.module.argument_names.get(self.symbol, ()),
        )

    def __repr__(self) -> str:
        parameters = ", ".join(f"{p.name or '?'}: {_described(p)}" for p in self.parameters)
        return f"<BinaryKernel {self.name}({parameters})>"


def _described(parameter: KernelArg) -> str:
    return "pointer" if parameter.kind == "global_buffer" else f"{parameter.size} bytes"


def dim3(what: str, size: Any) -> Dim3:
    """1 to 3 sizes as three. Raises LaunchError for anything else.

    >>> dim3("grid", 4), dim3("block", (16, 16))
    ((4, 1, 1), (16, 16, 1))
    """
    if size is None:
        raise LaunchError(f"the launch has no {what}=", hint="kernel(..., grid=4, block=256)")
    given = tuple(size) if isinstance(size, tuple | list) else (size,)
    if not 1 <= len(given) <= 3 or not all(isinstance(n, int) and not isinstance(n, bool) for n in given):
        raise LaunchError(f"{what}={size!r}: an integer, or up to three of them", hint=f"pass {what}=256, for example")
    return (*given, *(1,) * (3 - len(given)))


@dataclass(frozen=True)
class BinaryLaunch:
    """A launch of a kernel from a code object. smem: bytes of dynamic LDS.

    arguments: in the order of `kernel.parameters`. counters: what the simulator counted, if it counted this launch.
    traces: likewise, if it was timed.
    """

    kernel: BinaryKernel
    arguments: tuple[Any, ...]
    grid: Dim3
    block: Dim3
    smem: int = 0
    counters: list[LaunchCounters] = field(default_factory=list, repr=False)
    traces: list[Trace] = field(default_factory=list, repr=False)

    @property
    def trace(self) -> Trace:
        """Its trace. Raises ArgumentError if it was not timed."""
        if not self.traces:
            raise ArgumentError("the launch was not timed", hint="capture_binary_launches(traced=True) times launches")
        return self.traces[0]

    def __repr__(self) -> str:
        return f"<BinaryLaunch of {self.kernel.name}, grid={self.grid}, block={self.block}>"


@dataclass
class _Capture:
    counted: bool
    traced: bool
    launches: list[BinaryLaunch] = field(default_factory=list)
    seen: set[tuple[int, str]] = field(default_factory=set)


_capture: ContextVar[_Capture | None] = ContextVar("flydsl_binary_capture", default=None)


@contextmanager
def capture_binary_launches(*, counted: bool = False, traced: bool = False) -> Iterator[list[BinaryLaunch]]:
    """Yield a list that receives every launch of a binary kernel inside the `with` block, also one that fails.

    counted: count the first launch of each kernel (see `flydsl.simulator.counting`), unless checks are on.
    traced: likewise time it (see `flydsl.simulator.tracing`), if there are figures of the GPU; it runs as always.

    In nested blocks the outer one receives the launches, too.
    """
    around = _capture.get()
    capture = _Capture(counted, traced)
    try:
        with holding(_capture, capture):
            yield capture.launches
    finally:
        if around is not None:
            around.launches.extend(capture.launches)


def _recorded(launch: BinaryLaunch) -> AbstractContextManager[Any]:
    """Record a launch that is about to run inside the `with` block."""
    capture, around = _capture.get(), ExitStack()
    if capture is None:
        return around
    key = (id(launch.kernel.module.code), launch.kernel.name)
    is_first = key not in capture.seen
    capture.seen.add(key)
    capture.launches.append(launch)
    if capture.counted and is_first:
        around.enter_context(counted_into(launch.counters))
    if capture.traced and is_first:
        around.enter_context(traced_into(launch.traces, launch.kernel.module.code.arch))
    return around
