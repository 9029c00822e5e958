"""Choose compile-time arguments by measurement: `@flydsl.autotune` above `@flyc.jit`.

    @flydsl.autotune(configs=[flydsl.Config(block=64), flydsl.Config(block=256)], key=["n"])
    @flyc.jit
    def scale(A: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int]): ...

    scale(A, 1000)      # the first call for this n runs both, the later ones the faster

A GPU is measured. The simulator is not: there the model of time estimates it (`flydsl.simulator.tracing`). With
`executor=` the workers of a `concurrent.futures.Executor` run the trials.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from flydsl import env, errors
from flydsl.errors import ArgumentError, DeviceError, FlyError, SourceLocation
from flydsl.sweeps.artifact import Artifact, artifact_of, check_name
from flydsl.sweeps.bench import do_bench
from flydsl.sweeps.config import Config
from flydsl.system.torch_compile import untraced

if TYPE_CHECKING:
    from flydsl.sweeps.workers import MakesExecutor

__all__ = ["Autotuner", "Config", "autotune", "do_bench"]

Configs: TypeAlias = Sequence[Config] | Callable[..., Sequence[Config]]
Default: TypeAlias = Config | Callable[..., Config]
Hook: TypeAlias = Callable[[dict[str, Any]], Any]
Select: TypeAlias = Callable[[Sequence[tuple[Config, float]]], tuple[Config, float]]


@dataclass(frozen=True)
class Trials:
    """The common part of the trials of one search; called with a configuration, it makes one."""

    tuner: Autotuner
    arguments: dict[str, Any]
    variables: dict[str, str]

    def __call__(self, config: Config) -> dict[str, Any]:
        """The time in ms, or the error of a configuration that does not compile or faults, as plain data."""
        try:
            with env.replaced(self.variables):
                return {"time_ms": float(self.tuner.trial(config, self.arguments))}
        except FlyError as error:
            place = None if error.at is None else [*vars(error.at).values()]
            return {"error": type(error).__name__, "message": error.message, "hint": error.hint, "at": place}


def _error(outcome: Mapping[str, Any]) -> FlyError:
    """The error of a trial in another process."""
    kind = getattr(errors, outcome["error"], FlyError)
    at = None if outcome["at"] is None else SourceLocation(*outcome["at"])
    return kind(outcome["message"], at=at, hint=outcome["hint"])


class Autotuner:
    """A launcher that chooses its remaining arguments by measurement.

    cache: what was chosen for each key. failures: configurations that did not compile, by key. `autotune` makes it.
    do_bench_fn and the others: see there.
    """

    def __init__(
        self,
        fn: Any,
        configs: Configs,
        key: Sequence[str] | None = (),
        warmup: int = 5,
        rep: int = 25,
        prune_configs_by: Callable[[Sequence[Config], dict[str, Any]], Sequence[Config]] | None = None,
        reset_to_zero: Sequence[str] | None = (),
        restore_value: Sequence[str] | None = (),
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
        do_bench_fn: Callable[..., float] | None = None,
        default: Default | None = None,
        artifact_name: str | None = None,
        validate_hook: Callable[[dict[str, Any]], AbstractContextManager[Any]] | None = None,
        select_config: Select | None = None,
        executor: MakesExecutor | None = None,
    ) -> None:
        self.fn, self.configs = fn, configs if callable(configs) else list(configs)
        self.key = (key,) if isinstance(key, str) else tuple(key or ())
        self.warmup, self.rep, self.bench, self.default = warmup, rep, do_bench_fn or do_bench, default
        self.prune_configs_by, self.executor = prune_configs_by, executor
        self.reset_to_zero, self.restore_value = tuple(reset_to_zero or ()), tuple(restore_value or ())
        self.pre_hook, self.post_hook, self.validate_hook = pre_hook, post_hook, validate_hook
        self.select_config = select_config or _fastest
        self.artifact_name = None if artifact_name is None else check_name(artifact_name)
        self.cache: dict[Any, Config] = {}
        self.failures: dict[Any, list[tuple[Config, FlyError]]] = {}
        self._signature = inspect.signature(fn)
        functools.update_wrapper(self, fn)
        self._check()

    def _check(self) -> None:
        configs = () if callable(self.configs) else self._checked(self.configs)
        names = [*self.key, *self.reset_to_zero, *self.restore_value, *(n for c in configs for n in c.kwargs)]
        unknown = sorted({name for name in names if name not in self._signature.parameters})
        if unknown:
            known = ", ".join(self._signature.parameters)
            raise ArgumentError(
                f"autotune of {self.fn!r}: it has no parameter {', '.join(unknown)}",
                hint=f"configurations and key name parameters of the launcher: {known}",
            )

    def _checked(self, configs: Any) -> Sequence[Config]:
        if not configs or not all(isinstance(config, Config) for config in configs):
            raise ArgumentError(
                f"autotune of {self.fn!r}: configs must be a list of flydsl.Config, got {configs!r}",
                hint="pass [flydsl.Config(tile=64), ...], for example",
            )
        return list(configs)

    @untraced
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration for these arguments. The first call for a key finds it.

        Raises what the configurations raised where none of them compiles.
        """
        return self._run(self._resolve(args, kwargs), self._bound(args, kwargs))

    def resolve_config(self, *args: Any, **kwargs: Any) -> Config:
        """The configuration for these arguments, which the first call for a key searches; nothing else is launched."""
        return self._resolve(args, kwargs)

    def _bound(self, args: Any, kwargs: Any) -> dict[str, Any]:
        return dict(self._signature.bind_partial(*args, **kwargs).arguments)

    def _resolve(self, args: Any, kwargs: Any) -> Config:
        """The choice of this process, of a file, of a `default` that is a function, or of a search, in this order.

        With FLYDSL_AUTOTUNE=1 only a search counts, which is also written to the file.
        """
        arguments = self._bound(args, kwargs)
        configs = self._checked(self.configs(*args, **kwargs)) if callable(self.configs) else self.configs
        chosen = sorted(set(arguments).intersection(*(config.kwargs for config in configs)))
        if chosen:
            raise ArgumentError(f"{', '.join(chosen)}: autotune chooses it", hint="omit it from the call")
        key = self._key_of(arguments)
        if key in self.cache:
            return self.cache[key]
        is_search_forced = env.flag("FLYDSL_AUTOTUNE")
        artifact = self._artifact(arguments)
        found = None if is_search_forced or artifact is None else artifact.load()
        if found is None and callable(self.default) and not is_search_forced:
            found = self.default(*args, **kwargs)
        if found is None:
            found = self._search(key, configs, arguments)
            if artifact is not None and is_search_forced:
                artifact.store(found)
        self.cache[key] = found
        return found

    def _artifact(self, arguments: dict[str, Any]) -> Artifact | None:
        """The file of the choice for these arguments, or None."""
        if self.artifact_name is None or env.autotune_config_dir() is None:
            return None
        from flydsl.runtime.device import target_arch  # brings MLIR, as below

        place = next((a.device for a in arguments.values() if hasattr(a, "device") and hasattr(a, "dtype")), None)
        values = {name: _specialisation(arguments.get(name)) for name in self.key}
        return artifact_of(self.artifact_name, values, target_arch(getattr(place, "type", None) or "cpu"), place)

    def _key_of(self, arguments: dict[str, Any]) -> Any:
        values = tuple(_specialisation(arguments.get(name)) for name in self.key)
        tensors = tuple((name, str(a.dtype), str(a.device)) for name, a in arguments.items() if hasattr(a, "device"))
        return values, tensors

    def _search(self, key: Any, configs: Sequence[Config], arguments: dict[str, Any]) -> Config:
        if self.prune_configs_by is not None:
            configs = list(self.prune_configs_by(configs, dict(arguments)))
        found = dict(self._trials(configs, arguments))
        failures = self.failures[key] = [
            (config, error) for i, config in enumerate(configs) if isinstance(error := found[i], FlyError)
        ]
        times = [(time, config) for i, config in enumerate(configs) if isinstance(time := found[i], float)]
        if not times:
            if isinstance(self.default, Config):
                return self.default
            if failures:
                raise failures[0][1]
            raise ArgumentError(
                "autotune: no configuration is left to try",
                hint="prune_configs_by returns those worth a try; default= is taken where there is none",
            )
        pairs = [(config, time) for time, config in times]
        selected = self.select_config(pairs)
        if not any(selected[0] is config for config, _ in pairs):
            raise ArgumentError(
                f"select_config must return one of its pairs, got {selected!r}",
                hint="return one of the pairs (configuration, time in ms) that it was called with",
            )
        return selected[0]

    def _trials(self, configs: Sequence[Config], arguments: dict[str, Any]) -> Iterator[tuple[int, float | FlyError]]:
        """The time in ms or the error of each configuration, by its number, as they come."""
        if self.executor is None:
            for number, config in enumerate(configs):
                try:
                    yield number, self.trial(config, arguments)
                except FlyError as error:
                    yield number, error
            return
        from flydsl.sweeps.workers import RETRIES, Lost, results  # imports the executors of Python, as few need

        trials = Trials(self, arguments, env.code_variables())
        for number, outcome in results(trials, configs, self.executor, RETRIES):
            if isinstance(outcome, Lost):
                yield number, DeviceError(f"{configs[number]!r}: {outcome.reason}")
            else:
                yield number, outcome["time_ms"] if "time_ms" in outcome else _error(outcome)

    def trial(self, config: Config, arguments: dict[str, Any]) -> float:
        """The time of a configuration in ms. Tensors of `restore_value` keep their values.

        Raises ArgumentError for one that validate_hook does not accept.
        """
        with self._restored(arguments):
            if self.validate_hook is not None:
                self._validate(config, arguments)
        with self._restored(arguments):
            return float(self.bench(functools.partial(self._try, config, arguments), warmup=self.warmup, rep=self.rep))

    def _validate(self, config: Config, arguments: dict[str, Any]) -> None:
        """Launch once inside of the user's hook, whatever it raises."""
        assert self.validate_hook is not None
        try:
            with self.validate_hook({**arguments, **config.kwargs}):
                self._try(config, arguments)
        except FlyError:
            raise
        except Exception as error:
            raise ArgumentError(
                f"validate_hook does not accept {config!r}: {type(error).__name__}: {error}",
                hint="the others are tried; this one computes something else",
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process has no executor, and has chosen nothing yet."""
        options: dict[str, Any] = {
            "warmup": self.warmup, "rep": self.rep, "prune_configs_by": self.prune_configs_by,
            "reset_to_zero": self.reset_to_zero, "restore_value": self.restore_value, "pre_hook": self.pre_hook,
            "post_hook": self.post_hook, "do_bench_fn": self.bench, "default": self.default,
            "artifact_name": self.artifact_name, "validate_hook": self.validate_hook,
            "select_config": self.select_config,
        }  # fmt: skip
        return functools.partial(Autotuner, **options), (self.fn, self.configs, self.key)

    def _try(self, config: Config, arguments: dict[str, Any]) -> Any:
        """A launch of a trial: between the hooks, which get all arguments by name."""
        every = {**arguments, **config.kwargs}
        if self.pre_hook is not None:
            self.pre_hook(every)
        result = self._run(config, arguments)
        if self.post_hook is not None:
            self.post_hook(every)
        return result

    def _run(self, config: Config, arguments: dict[str, Any]) -> Any:
        for name in self.reset_to_zero:
            _memory(arguments[name]).zero_()
        every = {**arguments, **config.kwargs}
        if config.pre_hook is not None:
            config.pre_hook(every)
        from flydsl.compiler.hints import compile_hints  # brings MLIR, which `import flydsl` does without

        with compile_hints(config.compiler_opts):
            return self.fn(**every)

    @contextmanager
    def _restored(self, arguments: dict[str, Any]) -> Iterator[None]:
        """Restore the values of the tensors that a trial changes."""
        changed = [_memory(arguments[name]) for name in self.restore_value]
        saved = [(tensor, tensor.clone()) for tensor in changed]
        try:
            yield
        finally:
            for tensor, value in saved:
                tensor.copy_(value)


def _memory(argument: Any) -> Any:
    """The tensor itself, where a launch takes what `from_dlpack` made of it."""
    return getattr(argument, "tensor", argument)


def _specialisation(value: Any) -> Any:
    """The part of an argument that a choice depends on: a tensor's shape, or the value itself."""
    return tuple(value.shape) if hasattr(value, "shape") else value


def _fastest(pairs: Sequence[tuple[Config, float]]) -> tuple[Config, float]:
    return min(pairs, key=lambda pair: pair[1])


def autotune(
    configs: Configs,
    key: Sequence[str] | None = (),
    warmup: int = 5,
    rep: int = 25,
    prune_configs_by: Callable[[Sequence[Config], dict[str, Any]], Sequence[Config]] | None = None,
    reset_to_zero: Sequence[str] | None = (),
    restore_value: Sequence[str] | None = (),
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    do_bench: Callable[..., float] | None = None,
    default: Default | None = None,
    artifact_name: str | None = None,
    validate_hook: Callable[[dict[str, Any]], AbstractContextManager[Any]] | None = None,
    select_config: Select | None = None,
    executor: MakesExecutor | None = None,
) -> Callable[[Any], Autotuner]:
    """Decorate a launcher: try configurations and keep the fastest for each key while the process runs.

    configs: a list, or a function of the call's arguments that returns it. key: parameters on whose values (of tensors:
    shapes) the choice depends; element types and devices always count.
    prune_configs_by: `(configs, arguments) -> configs`, those worth a try. reset_to_zero: tensors that are zeroed
    before every launch; restore_value: tensors that have their values back after each trial.
    pre_hook, post_hook: called with all arguments by name before and after each launch of a trial.
    do_bench: `(call, warmup=, rep=) -> milliseconds`. default: what is taken where none of the others compiles; a
    function of the call's arguments chooses without a search instead, unless FLYDSL_AUTOTUNE=1.
    artifact_name: with FLYDSL_AUTOTUNE=1 the choice is written to the folder FLYDSL_AUTOTUNE_CONFIG_DIR, in files of
    that name, from where later processes have it without a search.
    validate_hook: `arguments -> context manager` around one launch of each configuration, before it is timed; one for
    which it raises is out. select_config: `[(configuration, time in ms), ...] -> one of them`, instead of the fastest.
    executor: runs the trials: any `concurrent.futures.Executor`, or a function that makes one for each search, as
    `flydsl.sweep` takes it. A worker has copies of the arguments, so trials leave the tensors alone. The choice is the
    same as without: of equal times the first configuration's. It is also an attribute, to be set later.
    """
    if hasattr(configs, "lower"):
        hint = "@flydsl.autotune(configs=[flydsl.Config(block=64), ...], key=[...]) above the launcher"
        raise ArgumentError(f"autotune of {configs!r} without configurations", hint=hint)
    options: dict[str, Any] = {
        "prune_configs_by": prune_configs_by, "reset_to_zero": reset_to_zero, "restore_value": restore_value,
        "pre_hook": pre_hook, "post_hook": post_hook, "do_bench_fn": do_bench, "default": default,
        "artifact_name": artifact_name, "validate_hook": validate_hook, "select_config": select_config,
        "executor": executor,
    }  # fmt: skip
    return lambda fn: Autotuner(fn, configs, key, warmup, rep, **options)
