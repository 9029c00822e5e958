"""`@flyc.jit`: launchers. The first call with a signature traces and compiles, later calls only launch."""

from __future__ import annotations

import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, overload

from flydsl import env
from flydsl.arch import Arch, get_arch
from flydsl.codegen import llvm
from flydsl.compiler.arguments.argument import Argument, ConstantArgument
from flydsl.compiler.arguments.tensor_spec import argument_of_type, is_type
from flydsl.compiler.artifact import CompiledArtifact
from flydsl.compiler.backends import launch_stages
from flydsl.compiler.caching.artifact_cache import Place, place_of, tools_version
from flydsl.compiler.caching.cache_key import cache_key, python_signature, surroundings
from flydsl.compiler.caching.dependencies import Dependencies
from flydsl.compiler.caching.jit_cache_manager import CacheInfo, JitCacheManager
from flydsl.compiler.caching.observation import observed
from flydsl.compiler.capture import Launch, current_capture, stages_are_kept
from flydsl.compiler.debugging.interpreted import is_interpreting
from flydsl.compiler.debugging.missing_waits import without_second_warnings
from flydsl.compiler.decorated import DecoratedFunction, refuse_options
from flydsl.compiler.hints import NO_HINTS, all_hints, compile_hints, hints_for
from flydsl.compiler.jit_argument import AdaptAll, adapter, tensor_place
from flydsl.compiler.lowering.mlir_compiler import MlirCompiler, ReplacedArtifact, is_replaced
from flydsl.compiler.pipeline import Pipeline
from flydsl.compiler.rewrite import rewrite
from flydsl.compiler.stages import StageSpec
from flydsl.compiler.trace import CompilationContext, is_tracing, trace
from flydsl.compiler.user_error import user_facing
from flydsl.dialect.location import argument_error
from flydsl.errors import CompileError, SimulatorError
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.progress import Task
from flydsl.runtime import device as devices
from flydsl.runtime.interface import Dim3
from flydsl.simulator.checks import asserted_checks, enabled_checks
from flydsl.system.garbage import collection_paused
from flydsl.system.torch_compile import untraced

if TYPE_CHECKING:
    from flydsl.hsaco.variables import Variables
    from flydsl.simulator import Simulation

__all__ = [
    "CacheInfo", "CompilationContext", "CompiledArtifact", "JitCacheManager", "JitFunction", "MlirCompiler", "compile",
    "jit",
]  # fmt: skip


# FlyDSL's name for the state of the package and its tools, which its tests replace.
_flydsl_key = tools_version


class JitFunction(DecoratedFunction):
    """A launcher: a function that runs on the host and launches kernels.

    compile_hints: hints for each compilation, see `flydsl.compiler.hints`.
    """

    decorator = "@flyc.jit"
    elsewhere: ClassVar[Mapping[str, str]] = {
        **{
            name: f"it is .lower(...).{name}, with the arguments of a call"
            for name in ("artifact", "run", "step", "stages")
        },
        **{
            name: f"it is .lower(...).artifact.{name}, with the arguments of a call"
            for name in ("isa", "hsaco", "kernels")
        },
        "launch": "call it with its arguments",
    }

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._mem_cache: dict[Any, CompiledArtifact] = {}
        self._last_compiled: tuple[Any, CompiledArtifact] | None = None
        self._compiling = threading.Lock()
        self._hits = self._misses = 0
        self.compile_hints: dict[str, Any] = {}
        self._sig: inspect.Signature | None = None
        # FlyDSL's names for its disk cache, which programs reset. Ours is `flydsl.compiler.caching.artifact_cache`.
        self.manager_key: str | None = None
        self.cache_manager: Any = None

    def options(self) -> tuple[Any, ...]:
        return (self.compile_hints,)

    def settings(self) -> dict[str, Any]:
        return {"compile_hints": self.compile_hints}

    @user_facing
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch on the device of the tensors, compiling for these arguments first if needed; None.

        Inside another launcher or a kernel it is an ordinary call, and its value that of the function. With
        COMPILE_ONLY=1 it compiles and launches nothing.
        """
        if is_tracing():
            return rewrite(self.function)(*args, **kwargs)
        values = self.signature.bind(args, kwargs)
        arguments, payloads = self._adapt(values)
        if is_interpreting() and not env.compile_only():
            return self._interpret(arguments, values, payloads)
        capture = current_capture()
        if capture is not None and capture.trace_only:
            capture.launches.append(Launch(self, tuple(values), self._pipeline(arguments, values)))
            return None
        artifact = self._find(arguments, values)
        if (asserted := asserted_checks()) and not env.compile_only():
            artifact = self._with_assertions(asserted, artifact, arguments, values, payloads)
        if capture is not None:
            with capture.add(Launch(self, tuple(values), artifact.pipeline)):
                if not env.compile_only():
                    self._launch(artifact, payloads, values)
        elif not env.compile_only():
            self._launch(artifact, payloads, values)
        return None

    def _launch(self, artifact: CompiledArtifact, payloads: Sequence[Any], values: list[Any]) -> None:
        try:
            artifact.launch_payloads(payloads)
        except SimulatorError as error:
            from flydsl.compiler.debugging.faults import name_lds, offer_simulation  # which right programs do without

            name_lds(error, artifact)
            offer_simulation(error, self, values)
            raise

    def _interpret(self, arguments: tuple[Argument, ...], values: list[Any], payloads: Sequence[Any]) -> None:
        """Run the call as Python: see `flydsl.interpreting`."""
        from flydsl.compiler.debugging.interpretation import interpret  # which other launches do without

        hints = hints_for(self.compile_hints)
        interpret(self.function, self.signature, arguments, values, payloads, self._arch(arguments), hints)

    def _with_assertions(
        self,
        asserted: frozenset[str],
        artifact: CompiledArtifact,
        arguments: tuple[Argument, ...],
        values: list[Any],
        payloads: Sequence[Any],
    ) -> CompiledArtifact:
        """The artifact to launch where checks are compiled in: the one that asserts, or, after that, this one."""
        hints = {"check_indices": "index" in asserted, "check_overflow": "overflow" in asserted}
        with compile_hints({hint: True for hint, is_asked in hints.items() if is_asked}), without_second_warnings():
            asserting = self._find(arguments, values)
        if not enabled_checks():
            return asserting
        if tensor_place(self.signature, arguments) == "cpu":
            from flydsl.runtime.rehearsal import rehearse  # which other launches do without

            rehearse(lambda device: asserting.launch_payloads(payloads, device))
        return artifact

    @untraced
    def compile(self, *args: Any, arch: str | None = None, **kwargs: Any) -> CompiledArtifact:
        """The artifact for these arguments, after a launch unless types are given, or an architecture.

        See `flyc.compile`.
        """
        values = self.signature.bind(args, kwargs)
        if arch is not None or any(map(is_type, self.signature.parameters, values)):
            return self._for_types(values, arch)
        self(*args, **kwargs)
        return self._find(self._adapt(values)[0], values)

    @user_facing
    def _for_types(self, values: list[Any], arch: str | None) -> CompiledArtifact:
        """The artifact for the types of arguments, on any device."""
        arguments = tuple(map(argument_of_type, self.signature.parameters, values))
        return self._find(arguments, values, arch)

    @user_facing
    def simulate(self, *args: Any, workgroup: Dim3 = (0, 0, 0), **kwargs: Any) -> Simulation:
        """Compile for these arguments and simulate the call, instruction by instruction: see `Simulation`.

        It stops before the first instruction of `workgroup` in the first kernel that has it. Raises the errors of a
        call, and ArgumentError for tensors that are not on the CPU.
        """
        values = self.signature.bind(args, kwargs)
        arguments, payloads = self._adapt(values)
        artifact, now = self._find(arguments, values), contextvars.copy_context()

        def described() -> Variables:
            from flydsl.compiler.debugging.variables import variables_of  # which only debuggers need

            specs = launch_stages(artifact.code.arch, all_hints(self.compile_hints))
            return variables_of(lambda: self._pipeline(arguments, values, launches=False, specs=specs), artifact.code)

        return artifact.simulate_payloads(payloads, workgroup, lambda: now.run(described))

    @functools.cached_property
    def _adapt(self) -> AdaptAll:
        return adapter(self.signature.parameters)

    def _find(
        self, arguments: tuple[Argument, ...], values: list[Any], arch_name: str | None = None
    ) -> CompiledArtifact:
        """The artifact for a call, from the cache or compiled now."""
        hints = hints_for(self.compile_hints)  # whose hash takes a while
        key = (arguments, env.code_settings(), None if hints is NO_HINTS else hints, arch_name)
        found = self._cached(key)
        if found is not None:
            self._hits += 1
            return found
        with self._compiling:  # of threads that call at once, one compiles
            return self._cached(key) or self._compile(key, arguments, values, arch_name)

    def _cached(self, key: Any) -> CompiledArtifact | None:
        artifact = self._mem_cache.get(key)
        return artifact if artifact is not None and artifact.dependencies.unchanged() else None

    def _compile(
        self, key: Any, arguments: tuple[Argument, ...], values: list[Any], arch_name: str | None
    ) -> CompiledArtifact:
        env.warn_of_unknown()
        dependencies = Dependencies(self.function, _compile_time(arguments, values))
        with collection_paused(), Task(f"compiling {self.function.__name__}", kind="compilation"):
            artifact = self._from_disk(dependencies, arguments, values, arch_name)
        artifact.dependencies, self._mem_cache[key] = dependencies, artifact
        self._last_compiled = cache_key(self.signature, arguments, values, self.compile_hints, arch_name), artifact
        self._misses += 1
        return artifact

    def _from_disk(
        self, dependencies: Dependencies, arguments: tuple[Argument, ...], values: list[Any], arch_name: str | None
    ) -> CompiledArtifact:
        """The artifact that another process has compiled, or a new one. What is watched is compiled."""
        hints = hints_for(self.compile_hints)
        arch = self._arch(arguments, arch_name)
        if is_replaced():
            return self._replaced(arguments, values, arch)
        specs = launch_stages(arch, all_hints(self.compile_hints))
        place = place_of(self.function, arguments, arch, hints, dependencies) if specs is None else None
        if place is None or stages_are_kept():
            return self._new(arguments, values, arch, specs, place)
        found = place.find(arguments, self.signature)
        if found is not None:
            return found
        with place.alone() as another_did:
            found = place.find(arguments, self.signature) if another_did else None
            return found or self._new(arguments, values, arch, specs, place)

    def _new(
        self,
        arguments: tuple[Argument, ...],
        values: list[Any],
        arch: Arch,
        specs: Sequence[StageSpec] | None,
        place: Place | None,
    ) -> CompiledArtifact:
        """A new artifact, kept at its place on disk, if it has one."""
        if env.flag("FLYDSL_RUNTIME_RUN_ONLY"):
            raise CompileError(
                f"{self.function.__name__} is not in the cache for these arguments, and FLYDSL_RUNTIME_RUN_ONLY is set",
                hint="compile it without FLYDSL_RUNTIME_RUN_ONLY first",
            )
        llvm.expect(arch, env.opt_level())
        with observed() as seen:
            keep = stages_are_kept()
            pipeline = self._pipeline(arguments, values, arch.name, keep_snapshots=keep, specs=specs)
        artifact = self._artifact_of(pipeline, values)
        if place is not None:
            place.keep(artifact, seen)
        return artifact

    def _artifact_of(self, pipeline: Pipeline, values: list[Any]) -> CompiledArtifact:
        """Run a pipeline. A capture receives one that fails, too."""
        capture = current_capture()
        try:
            return pipeline.artifact
        finally:
            if capture is not None and not pipeline.finished:
                capture.launches.append(Launch(self, tuple(values), pipeline))

    @property
    def _call_state_cache(self) -> dict[Any, CompiledArtifact]:
        """FlyDSL's name for what a second call finds: the artifacts."""
        return self._mem_cache

    def _ensure_sig(self) -> None:
        """Read the signature, which is then `_sig`."""
        self._sig = self._sig or python_signature(self.signature)

    def _resolve_and_make_cache_key(self, arguments: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
        """The inputs of a compilation for these arguments, by name: see `flydsl.compiler.caching.cache_key`."""
        values = self.signature.bind((), arguments)
        return cache_key(self.signature, self._adapt(values)[0], values, self.compile_hints)

    _make_cache_key = _resolve_and_make_cache_key  # its name in FlyDSL 0.2

    def _build_full_cache_key(
        self, arguments: Mapping[str, Any], *, owner_cls: type | None = None, bound_self: Any = None
    ) -> tuple[tuple[str, Any], ...]:
        """The same with the source of the launcher and of all that it refers to."""
        given = dict(arguments) if bound_self is None else {"self": bound_self, **arguments}
        values = self.signature.bind((), given)
        adapted, _ = self._adapt(values)
        key = cache_key(self.signature, adapted, values, self.compile_hints)
        return key + surroundings(self.function, _compile_time(adapted, values))

    def cache_info(self) -> CacheInfo:
        """Counts of the calls that found their compilation in memory, and of compilations."""
        return CacheInfo(self._hits, self._misses, None, len(self._mem_cache))

    @user_facing
    def lower(self, *args: Any, arch: str | None = None, **kwargs: Any) -> Pipeline:
        """Trace for these arguments and return the pipeline, before its first stage.

        arch: the target, by default that of a launch with the same arguments. Every call compiles again.
        """
        values = self.signature.bind(args, kwargs)
        arguments, _ = self._adapt(values)
        return self._pipeline(arguments, values, arch, launches=False)

    def _pipeline(
        self,
        arguments: tuple[Argument, ...],
        values: list[Any],
        arch_name: str | None = None,
        *,
        launches: bool = True,
        keep_snapshots: bool = True,
        specs: Sequence[StageSpec] | None = None,
    ) -> Pipeline:
        arch = self._arch(arguments, arch_name)
        is_elsewhere = any(argument.device not in (None, "cpu") for argument in arguments)
        with collection_paused():
            traced = trace(self.function, self.signature, arguments, values, arch, hints_for(self.compile_hints))
        return Pipeline(
            self.function.__name__,
            traced,
            arch,
            arguments,
            self.signature,
            keep_snapshots=keep_snapshots,
            meanwhile=devices.preload if launches and not (env.compile_only() or is_elsewhere) else _nothing,
            specs=specs,
        )

    def _replaced(self, arguments: tuple[Argument, ...], values: list[Any], arch: Arch) -> ReplacedArtifact:
        """The result of a program's own `MlirCompiler.compile` for the traced module."""
        return ReplacedArtifact(self._pipeline(arguments, values, arch.name))

    def _arch(self, arguments: tuple[Argument, ...], name: str | None = None) -> Arch:
        """The architecture of that name, or the one that a launch with these arguments runs on."""
        return get_arch(name or devices.target_arch(tensor_place(self.signature, arguments)))


def _compile_time(arguments: tuple[Argument, ...], values: list[Any]) -> list[Any]:
    """The arguments whose values are known at compile time."""
    return [value for key, value in zip(arguments, values, strict=True) if isinstance(key, ConstantArgument)]


def _nothing() -> None:
    """For what will not run on the simulator."""


class CompileCallable:
    """`flyc.compile(launcher, *args)`, and with hints `flyc.compile[{"waves_per_eu": 2}](launcher, *args)`."""

    def __init__(self, hints: Mapping[str, Any]) -> None:
        self._compile_hints = dict(hints)

    def __getitem__(self, hints: Mapping[str, Any]) -> CompileCallable:
        if not isinstance(hints, Mapping):
            raise argument_error(
                f"flyc.compile[...] expects a dict of hints, not {hints!r}",
                'for example flyc.compile[{"waves_per_eu": 2}]',
            )
        return CompileCallable({**self._compile_hints, **hints})

    @untraced
    def __call__(self, function: JitFunction, *args: Any, arch: str | None = None, **kwargs: Any) -> Any:
        """Call a launcher and return the artifact for these arguments: the same launch, without looking it up.

        Without arguments nothing is compiled: the hints become the launcher's, which is returned.

        The artifact takes tensors of any size, and other runtime numbers; Constexpr values stay as they are. With
        COMPILE_ONLY=1 nothing is launched.

        Types may stand for arguments: `flyc.TensorSpec(fx.Float16, 2)` or a tensor on torch's device "meta" for a
        tensor, `fx.Int32` for a number, `fx.Stream` for a stream. Then nothing is launched, nor if `arch` names an
        architecture to compile for, and the artifact takes tensors of any device that runs it.
        """
        if not isinstance(getattr(function, "bound", function), JitFunction):
            raise argument_error(f"compile takes a @flyc.jit function, not {function!r}", "decorate it: @flyc.jit")
        __tracebackhide__ = True
        with compile_hints(self._compile_hints):
            if args or kwargs or arch is not None:
                return function.compile(*args, arch=arch, **kwargs)
        launcher = getattr(function, "bound", function)
        launcher.compile_hints = {**launcher.compile_hints, **self._compile_hints}
        return function


compile = CompileCallable({})


@overload
def jit(function: Callable[..., Any], /) -> JitFunction: ...


@overload
def jit() -> Callable[[Callable[..., Any]], JitFunction]: ...


def jit(function: Callable[..., Any] | None = None, /, **unknown: Any) -> Any:
    """Decorate a launcher: a host function that computes launch configurations and launches kernels.

        @flyc.jit
        def scale(x: fx.Tensor, factor: fx.Float32, n: fx.Int32):
            scale_kernel(x, factor, n).launch(grid=(n + 255) // 256, block=256)

    It is compiled for the types of its arguments. Sizes of tensors and `fx.Int32` values may change; each new value of
    an `fx.Constexpr` is another compilation.
    """
    refuse_options("@flyc.jit", unknown)
    return JitFunction if function is None else JitFunction(function)


__getattr__ = unknown_name(__name__, globals())
