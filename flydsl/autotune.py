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
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flydsl import env, errors
from flydsl.errors import ArgumentError, DeviceError, FlyError, SourceLocation
from flydsl.sweeps.bench import do_bench
from flydsl.sweeps.config import Config
from flydsl.sweeps.workers import RETRIES, Lost, MakesExecutor, results
from flydsl.torch_compile import untraced

__all__ = ["Autotuner", "Config", "autotune", "do_bench"]


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
    do_bench_fn, default: see there.
    """

    def __init__(
        self,
        fn: Any,
        configs: Sequence[Config],
        key: Sequence[str] = (),
        warmup: int = 5,
        rep: int = 25,
        prune_configs_by: Callable[[Sequence[Config], dict[str, Any]], Sequence[Config]] | None = None,
        reset_to_zero: Sequence[str] = (),
        restore_value: Sequence[str] = (),
        do_bench_fn: Callable[..., float] = do_bench,
        default: Config | None = None,
        executor: MakesExecutor | None = None,
    ) -> None:
        self.fn, self.configs, self.key = fn, list(configs), (key,) if isinstance(key, str) else tuple(key)
        self.warmup, self.rep, self.bench, self.default = warmup, rep, do_bench_fn, default
        self.prune_configs_by, self.executor = prune_configs_by, executor
        self.reset_to_zero, self.restore_value = tuple(reset_to_zero), tuple(restore_value)
        self.cache: dict[Any, Config] = {}
        self.failures: dict[Any, list[tuple[Config, FlyError]]] = {}
        self._signature = inspect.signature(fn)
        functools.update_wrapper(self, fn)
        self._check()

    def _check(self) -> None:
        if not self.configs or not all(isinstance(config, Config) for config in self.configs):
            raise ArgumentError(
                f"autotune of {self.fn!r}: configs={self.configs!r}", hint="pass a list of flydsl.Config"
            )
        names = [*self.key, *self.reset_to_zero, *self.restore_value, *(n for c in self.configs for n in c.kwargs)]
        unknown = sorted({name for name in names if name not in self._signature.parameters})
        if unknown:
            known = ", ".join(self._signature.parameters)
            raise ArgumentError(
                f"autotune of {self.fn!r}: it has no parameter {', '.join(unknown)}",
                hint=f"configurations and key name parameters of the launcher: {known}",
            )

    @untraced
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration for these arguments. The first call for a key finds it.

        Raises what the configurations raised where none of them compiles.
        """
        arguments = dict(self._signature.bind_partial(*args, **kwargs).arguments)
        chosen = sorted(set(arguments).intersection(*(config.kwargs for config in self.configs)))
        if chosen:
            raise ArgumentError(f"{', '.join(chosen)}: autotune chooses it", hint="leave it out of the call")
        key = self._key_of(arguments)
        if key not in self.cache:
            self.cache[key] = self._search(key, arguments)
        return self._run(self.cache[key], arguments)

    def _key_of(self, arguments: dict[str, Any]) -> Any:
        values = tuple(_specialisation(arguments.get(name)) for name in self.key)
        tensors = tuple((name, str(a.dtype), str(a.device)) for name, a in arguments.items() if hasattr(a, "device"))
        return values, tensors

    def _search(self, key: Any, arguments: dict[str, Any]) -> Config:
        configs = self.configs
        if self.prune_configs_by is not None:
            configs = list(self.prune_configs_by(configs, dict(arguments)))
        found = dict(self._trials(configs, arguments))
        failures = self.failures[key] = [
            (config, error) for i, config in enumerate(configs) if isinstance(error := found[i], FlyError)
        ]
        times = [(time, config) for i, config in enumerate(configs) if isinstance(time := found[i], float)]
        if not times:
            if self.default is not None:
                return self.default
            if failures:
                raise failures[0][1]
            raise ArgumentError(
                "autotune: no configuration is left to try",
                hint="prune_configs_by returns those worth a try; default= is taken where there is none",
            )
        return min(times, key=lambda pair: pair[0])[1]

    def _trials(self, configs: Sequence[Config], arguments: dict[str, Any]) -> Iterator[tuple[int, float | FlyError]]:
        """The time in ms or the error of each configuration, by its number, as they come."""
        if self.executor is None:
            for number, config in enumerate(configs):
                try:
                    yield number, self.trial(config, arguments)
                except FlyError as error:
                    yield number, error
            return
        trials = Trials(self, arguments, env.code_variables())
        for number, outcome in results(trials, configs, self.executor, RETRIES):
            if isinstance(outcome, Lost):
                yield number, DeviceError(f"{configs[number]!r}: {outcome.reason}")
            else:
                yield number, outcome["time_ms"] if "time_ms" in outcome else _error(outcome)

    def trial(self, config: Config, arguments: dict[str, Any]) -> float:
        """The time of a configuration in ms. Tensors of `restore_value` keep their values."""
        with self._restored(arguments):
            return float(self.bench(functools.partial(self._run, config, arguments), warmup=self.warmup, rep=self.rep))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process has no executor, and has chosen nothing yet."""
        options = self.warmup, self.rep, self.prune_configs_by, self.reset_to_zero, self.restore_value, self.bench
        return Autotuner, (self.fn, self.configs, self.key, *options, self.default)

    def _run(self, config: Config, arguments: dict[str, Any]) -> Any:
        for name in self.reset_to_zero:
            arguments[name].zero_()
        every = {**arguments, **config.kwargs}
        if config.pre_hook is not None:
            config.pre_hook(every)
        from flydsl.compiler.hints import compile_hints  # brings MLIR, which who loads `flydsl` may do without

        with compile_hints(config.compiler_opts):
            return self.fn(**every)

    @contextmanager
    def _restored(self, arguments: dict[str, Any]) -> Iterator[None]:
        """Restore the values of the tensors that a trial changes."""
        saved = [(arguments[name], arguments[name].clone()) for name in self.restore_value]
        try:
            yield
        finally:
            for tensor, value in saved:
                tensor.copy_(value)


def _specialisation(value: Any) -> Any:
    """The part of an argument that a choice depends on: a tensor's shape, or the value itself."""
    return tuple(value.shape) if hasattr(value, "shape") else value


def autotune(
    configs: Sequence[Config],
    key: Sequence[str] = (),
    warmup: int = 5,
    rep: int = 25,
    prune_configs_by: Callable[[Sequence[Config], dict[str, Any]], Sequence[Config]] | None = None,
    reset_to_zero: Sequence[str] = (),
    restore_value: Sequence[str] = (),
    do_bench: Callable[..., float] = do_bench,
    default: Config | None = None,
    executor: MakesExecutor | None = None,
) -> Callable[[Any], Autotuner]:
    """Decorate a launcher: try configurations and keep the fastest for each key while the process runs.

    key: parameters on whose values (of tensors: shapes) the choice depends; element types and devices always count.
    prune_configs_by: `(configs, arguments) -> configs`, those worth a try. reset_to_zero: tensors that are zeroed
    before every launch; restore_value: tensors that have their values back after each trial.
    do_bench: `(call, warmup=, rep=) -> milliseconds`. default: what is taken where none of the others compiles.
    executor: runs the trials: any `concurrent.futures.Executor`, or a function that makes one for each search, as
    `flydsl.sweep` takes it. A worker has copies of the arguments, so trials leave the tensors alone. The choice is the
    same as without: of equal times the first configuration's. It is also an attribute, to be set later.
    """
    if callable(configs):
        hint = "@flydsl.autotune(configs=[flydsl.Config(block=64), ...], key=[...]) above the launcher"
        raise ArgumentError(f"autotune of {configs!r} without configurations", hint=hint)
    return lambda fn: Autotuner(
        fn, configs, key, warmup, rep, prune_configs_by, reset_to_zero, restore_value, do_bench, default, executor
    )
