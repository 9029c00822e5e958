"""Choose compile-time arguments by measurement: `@flydsl.autotune` above `@flyc.jit`.

    @flydsl.autotune(configs=[flydsl.Config(block=64), flydsl.Config(block=256)], key=["n"])
    @flyc.jit
    def scale(A: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int]): ...

    scale(A, 1000)      # the first call for this n runs both, the later ones the faster

A GPU is measured. The simulator is not: there the time is the roofline estimate from what a launch counted.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flydsl.errors import ArgumentError, FlyError

__all__ = ["Autotuner", "Config", "autotune", "do_bench"]


class Config:
    """One choice of arguments, by the names of the launcher's parameters.

    pre_hook: called with all arguments by name before each launch. num_warps: an argument of that name.
    waves_per_eu, maxnreg: compiler hints (`flydsl.compiler.hints`).
    """

    def __init__(
        self,
        *,
        num_warps: int | None = None,
        waves_per_eu: int | None = None,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.kwargs = kwargs if num_warps is None else {**kwargs, "num_warps": num_warps}
        self.num_warps, self.waves_per_eu, self.maxnreg = num_warps, waves_per_eu, maxnreg
        self.pre_hook = pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return dict(self.kwargs)

    @property
    def compiler_opts(self) -> dict[str, Any]:
        """The compiler hints that are given."""
        hints = {"waves_per_eu": self.waves_per_eu, "maxnreg": self.maxnreg}
        return {name: value for name, value in hints.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """The arguments and compiler hints by name, without the hook.

        >>> Config.from_dict(Config(block=64, waves_per_eu=2).to_dict())
        Config(block=64, waves_per_eu=2)
        """
        return {**self.kwargs, **self.compiler_opts}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Config:
        """The configuration of such a dict."""
        return cls(**values)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"


def do_bench(fn: Callable[[], Any], warmup: int = 5, rep: int = 25) -> float:
    """The time in ms of the launches of a call: on a GPU the median of `rep` calls after `warmup` others.

    On the simulator one call is made, and the time is estimated (`flydsl.simulator.counters`).
    """
    from flydsl.simulator import counting

    with counting() as counters:
        fn()
    if counters.launches:
        return sum(launch.roofline().time_us for launch in counters.launches) / 1000
    import torch

    if not torch.cuda.is_available():
        raise ArgumentError("do_bench: the call launched nothing, neither on the simulator nor on a GPU")
    times = []
    for repetition in range(warmup + rep):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        fn()
        end.record()
        end.synchronize()
        if repetition >= warmup:
            times.append(start.elapsed_time(end))
    return float(sorted(times)[len(times) // 2])


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
    ) -> None:
        self.fn, self.configs, self.key = fn, list(configs), tuple(key)
        self.warmup, self.rep, self.bench, self.default = warmup, rep, do_bench_fn, default
        self.prune_configs_by = prune_configs_by
        self.reset_to_zero, self.restore_value = tuple(reset_to_zero), tuple(restore_value)
        self.cache: dict[Any, Config] = {}
        self.failures: dict[Any, list[tuple[Config, FlyError]]] = {}
        self._signature = inspect.signature(fn)
        functools.update_wrapper(self, fn)
        self._check()

    def _check(self) -> None:
        if not self.configs or not all(isinstance(config, Config) for config in self.configs):
            raise ArgumentError(f"autotune of {self.fn!r}: configs={self.configs!r}", hint="a list of flydsl.Config")
        names = [*self.key, *self.reset_to_zero, *self.restore_value, *(n for c in self.configs for n in c.kwargs)]
        unknown = sorted({name for name in names if name not in self._signature.parameters})
        if unknown:
            raise ArgumentError(f"autotune of {self.fn!r}: it has no parameter {', '.join(unknown)}")

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
        times: list[tuple[float, Config]] = []
        failures = self.failures[key] = []
        for config in configs:
            try:
                with self._restored(arguments):
                    run = functools.partial(self._run, config, arguments)
                    times.append((self.bench(run, warmup=self.warmup, rep=self.rep), config))
            except FlyError as error:
                failures.append((config, error))
        if not times:
            if self.default is not None:
                return self.default
            if failures:
                raise failures[0][1]
            raise ArgumentError("autotune: no configuration is left to try")
        return min(times, key=lambda pair: pair[0])[1]

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
) -> Callable[[Any], Autotuner]:
    """Decorate a launcher: try configurations and keep the fastest for each key while the process runs.

    key: parameters on whose values (of tensors: shapes) the choice depends; element types and devices always count.
    prune_configs_by: `(configs, arguments) -> configs`, those worth a try. reset_to_zero: tensors that are zeroed
    before every launch; restore_value: tensors that have their values back after each trial.
    do_bench: `(call, warmup=, rep=) -> milliseconds`. default: what is taken where none of the others compiles.
    """
    return lambda fn: Autotuner(
        fn, configs, key, warmup, rep, prune_configs_by, reset_to_zero, restore_value, do_bench, default
    )
