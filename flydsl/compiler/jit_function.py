"""`@flyc.jit`: launchers. The first call with a signature traces and compiles, the others launch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from flydsl.arch import get_arch
from flydsl.compiler.artifact import CompiledArtifact
from flydsl.compiler.dependencies import Dependencies
from flydsl.compiler.jit_argument import TensorKey, adapt
from flydsl.compiler.pipeline import Pipeline
from flydsl.compiler.rewrite import rewrite
from flydsl.compiler.signature import Signature
from flydsl.compiler.trace import is_tracing, trace
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError, FlyError
from flydsl.runtime import device as devices
from flydsl.utils import env

__all__ = ["JitFunction", "Launch", "capture_launches", "jit"]


@dataclass(frozen=True)
class Launch:
    """A call of a launcher that `capture_launches` saw. arguments: in parameter order, defaults filled in."""

    function: JitFunction
    arguments: tuple[Any, ...]
    artifact: CompiledArtifact

    @property
    def pipeline(self) -> Pipeline:
        """How it was compiled."""
        return self.artifact.pipeline


_captured: ContextVar[list[Launch] | None] = ContextVar("flydsl_captured", default=None)


@contextmanager
def capture_launches() -> Iterator[list[Launch]]:
    """A list that receives every launch made inside the `with` block, also one that fails on the device."""
    launches: list[Launch] = []
    token = _captured.set(launches)
    try:
        yield launches
    finally:
        _captured.reset(token)


class JitFunction:
    """A launcher: a function that runs on the host and launches kernels."""

    __flydsl_function__ = True

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._signature: Signature | None = None
        self._cache: dict[Any, tuple[Dependencies, CompiledArtifact]] = {}

    @property
    def signature(self) -> Signature:
        if self._signature is None:
            self._signature = Signature(self.function)
        return self._signature

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Compile for these arguments, unless that is done, and launch on the device where the tensors are.

        Inside another launcher it is an ordinary call. With COMPILE_ONLY=1 it compiles and launches nothing.
        """
        if is_tracing():
            return rewrite(self.function)(*args, **kwargs)
        try:
            self._launch(args, kwargs)
        except FlyError as error:
            # The message says where and what; frames of the compiler would bury it.
            raise error.with_traceback(None) from None
        return None

    def _launch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        values = self.signature.bind(args, kwargs)
        keys, payloads = self._adapt(values)
        artifact = self._compiled(keys, values)
        captured = _captured.get()
        if captured is not None:
            captured.append(Launch(self, tuple(values), artifact))
        if not env.flag("COMPILE_ONLY"):
            artifact.launch(payloads)

    def _adapt(self, values: list[Any]) -> tuple[tuple[Any, ...], list[Any]]:
        """The keys and payloads of all arguments."""
        keys, payloads = [], []
        for parameter, value in zip(self.signature.parameters, values, strict=True):
            key, payload = adapt(parameter, value)
            keys.append(key)
            payloads.append(payload)
        return tuple(keys), payloads

    def _compiled(self, keys: tuple[Any, ...], values: list[Any]) -> CompiledArtifact:
        arch_name = devices.target_arch(device_type(self.signature, keys))
        key = (keys, arch_name, env.opt_level(), env.flag("FLYDSL_DEBUG_ENABLE_DEBUG_INFO"))
        found = self._cache.get(key)
        if found is not None and found[0].unchanged():
            return found[1]
        dependencies = Dependencies(self.function)
        artifact = self._pipeline(keys, values, arch_name).artifact
        self._cache[key] = (dependencies, artifact)
        return artifact

    def lower(self, *args: Any, arch: str | None = None, **kwargs: Any) -> Pipeline:
        """Trace for these arguments and give the pipeline, of which nothing has run yet.

        arch: the target, by default that of a launch with the same arguments. Compiles anew at every call.
        """
        try:
            values = self.signature.bind(args, kwargs)
            keys, _ = self._adapt(values)
            return self._pipeline(keys, values, arch or devices.target_arch(device_type(self.signature, keys)))
        except FlyError as error:
            raise error.with_traceback(None) from None

    def _pipeline(self, keys: tuple[Any, ...], values: list[Any], arch_name: str) -> Pipeline:
        arch = get_arch(arch_name)
        traced = trace(self.function, self.signature.parameters, keys, values, arch)
        return Pipeline(self.function.__name__, traced, arch, keys, self.signature)

    def __repr__(self) -> str:
        return f"<flyc.jit {self.function.__name__}({', '.join(p.name for p in self.signature.parameters)})>"


def device_type(signature: Signature, keys: tuple[Any, ...]) -> str:
    """Where a call's tensors are: "cpu" or "cuda". Raises ArgumentError where they are not in one place."""
    found = {
        key.device: parameter.name
        for parameter, key in zip(signature.parameters, keys, strict=True)
        if isinstance(key, TensorKey)
    }
    if len(found) > 1:
        places = ", ".join(f"{name} is on {device}" for device, name in found.items())
        raise ArgumentError(
            f"{signature.name}: tensors on different devices: {places}",
            at=user_location(),
            hint="move them to one device with .to(...)",
        )
    return next(iter(found), "cpu")


def jit(function: Callable[..., Any]) -> JitFunction:
    """Decorate a launcher: a host function that computes launch configurations and launches kernels.

    It is compiled for the types of its arguments; tensors may change size, `fx.Int32` values may change, and each value
    of an `fx.Constexpr` compiles anew.
    """
    return JitFunction(function)
