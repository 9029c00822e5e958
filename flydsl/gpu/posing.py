"""Begin and end: what is replaced in torch while a GPU poses, and put back afterwards as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
import torch.profiler
from torch.utils._device import _device_constructors

from flydsl import env
from flydsl.arch import get_arch
from flydsl.arch.products import Product, product_of
from flydsl.compiler.jit_function import JitFunction
from flydsl.errors import ArgumentError, DeviceError
from flydsl.errors.places import treat_as_library
from flydsl.gpu import of_benchmark, of_compile, of_triton
from flydsl.gpu.absent import (
    refuse_absent,
    without_default_type,
    without_extensions,
    without_jagged,
    without_nccl,
    without_sharding,
)
from flydsl.gpu.cuda_module import Posed
from flydsl.gpu.dlpack import replace_capsules
from flydsl.gpu.factories import register
from flydsl.gpu.import_hook import ImportHook, Replacements
from flydsl.gpu.launches import Launches, Summary
from flydsl.gpu.memory import MEMORY, MOST_GPUS
from flydsl.gpu.operators import Operators
from flydsl.gpu.processes import pose_in_children
from flydsl.gpu.profiler import of_autograd, profile
from flydsl.gpu.put_off import put_off
from flydsl.gpu.storage import storage_to
from flydsl.gpu.streams import CLOCK
from flydsl.gpu.torch_module import (
    no_tag,
    of_accelerator,
    of_tensors,
    of_torch,
    restore_location,
    stay_on_host,
    with_swapped_parameters,
)
from flydsl.gpu.waiting import WAITING
from flydsl.runtime import device as runtime_device
from flydsl.simulator.launching import put_around

if TYPE_CHECKING:
    from flydsl.gpu.measured import LocalGpu

_HIP_VERSION = "7.1.0"


class Posing:
    """A GPU that poses as torch's. `end` restores everything."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.product, self.count = name, product_of(name), count
        product = self.product
        self._replaced = Replacements()
        self._library: torch.library.Library | None = None
        self.launches, self.operators = Launches(product), Operators(product)
        changes = of_triton.changes(self._replaced) | of_compile.changes(self._replaced)
        changes["torch.utils.benchmark.utils.timer"] = of_benchmark.read_the_clock(self._replaced)
        changes["torch.utils.cpp_extension"] = without_extensions(self._replaced)
        changes["torch.distributed.distributed_c10d"] = without_nccl(self._replaced)
        changes["torch.distributed.fsdp"] = without_sharding(self._replaced)
        self._hook = ImportHook(changes, self._replaced)

    def begin(self) -> None:
        treat_as_library(str(Path(torch.__file__).parent))  # an error below one of its functions is at the user's line
        MEMORY.current, MEMORY.gpus = 0, self.count
        MEMORY.capacity_bytes = self.product.memory_gib << 30
        MEMORY.products_per_sum = get_arch(self.product.arch).products_per_sum
        CLOCK.reset()
        env.replace_everywhere({"FLYDSL_GPU_ARCH": self.product.arch})
        runtime_device.pose(True)
        put_around(self.launches)
        MEMORY.on_operator, MEMORY.on_copy = self.operators, self.operators.take_copy
        MEMORY.put_off = put_off
        self._replaced.replace(JitFunction, "__call__", _asking_directly(JitFunction.__call__))
        _device_constructors()  # keeps torch's factories, which are replaced below
        for name, value in Posed(self.product, self.count).replaced().items():
            self._replace(torch.cuda, name, value)
            for part in (torch.cuda.graphs, torch.cuda.memory, torch.cuda.random, torch.cuda.streams):
                if name in vars(part):
                    self._replace(part, name, vars(torch.cuda)[name])
        for name, value in of_accelerator(self.count).items():
            self._replace(torch.accelerator, name, value)
        self._replace(torch.version, "hip", _HIP_VERSION)
        self._replace(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
        for name, value in of_tensors().items():
            self._replace(torch.Tensor, name, value)
        for name, value in (of_torch() | without_default_type()).items():
            self._replace(torch, name, value)
        for name, value in without_jagged().items():
            self._replace(torch.nested, name, value)
        self._replace(torch.backends.cuda, "is_built", lambda: True)
        base: Any = torch.storage._StorageBase
        self._replaced.replace(base, "to", storage_to(base.to))
        self._replaced.replace(
            torch._utils, "_get_restore_location", restore_location(torch._utils._get_restore_location)
        )
        replace_capsules(self._replaced)
        refuse_absent(self._replaced)
        self._replace(torch.profiler, "profile", profile)
        self._replaced.replace(torch.autograd.profiler, "profile", of_autograd(torch.autograd.profiler.profile))
        self._replace(torch.nn.Module, "_apply", with_swapped_parameters(torch.nn.Module._apply))
        torch.serialization.register_package(5, no_tag, stay_on_host)
        self._library = register()
        of_compile.begin(self._replaced)
        pose_in_children(self._replaced, use, self.name, self.count)
        self._hook.begin()

    def end(self) -> None:
        try:
            WAITING.carry_out()
        finally:
            self._end()

    def _end(self) -> None:
        self._hook.end()
        self._replaced.restore()
        if self._library is not None:
            self._library._destroy()
            self._library = None
        packages = torch.serialization._package_registry
        packages[:] = [package for package in packages if package[2] is not stay_on_host]
        runtime_device.pose(False)
        put_around(None)
        MEMORY.on_operator = MEMORY.on_copy = MEMORY.put_off = None
        MEMORY.gpus = MOST_GPUS
        env.replace_everywhere({})

    def _replace(self, place: Any, name: str, value: Any) -> None:
        if isinstance(place, ModuleType) and callable(value) and not isinstance(value, type):
            value = _function(place.__name__, name, value)
        self._replaced.replace(place, name, value)


def _asking_directly(launch: Callable[..., None]) -> Callable[..., None]:
    """A launcher's call that asks tensors of the GPU as those of the host: without calling Python for each answer."""

    def call(self: JitFunction, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        with torch._C.DisableTorchFunctionSubclass():
            return launch(self, *args, **kwargs)

    return call


def _function(module: str, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a module that does what another does. `torch.compile` tells functions apart by identity."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    function.__module__, function.__name__, function.__qualname__ = module, name, name
    return function


_active: list[Posing] = []
_local: list[LocalGpu] = []


def use(name: str, count: int = 1) -> None:
    """Pose as a GPU from now on, until `off()`.

    name: a product, such as "mi300x" or "RX 9070 XT", or an architecture. count: how many of them there are.

    Raises ArchError for an unknown name, ArgumentError where torch has a GPU of its own, DeviceError for torch before
    2.6.
    """
    off()
    if not isinstance(count, int) or not 1 <= count <= MOST_GPUS:
        raise ArgumentError(f"the number of GPUs must be 1 to {MOST_GPUS}, got {count!r}")
    if not hasattr(torch, "accelerator"):
        raise DeviceError(
            f"a posed GPU needs torch 2.6 or newer, got {torch.__version__}", hint="pip install 'torch>=2.6'"
        )
    if torch.cuda.is_available():
        raise ArgumentError(
            f"torch has a GPU here, {torch.cuda.get_device_name()}: another one cannot pose as it",
            hint="run the program as it is, on this GPU",
        )
    posing = Posing(name, count)
    try:
        posing.begin()
    except BaseException:
        posing.end()
        raise
    _active.append(posing)


def off() -> None:
    """Make torch what it was before `use`. Tensors of the GPU that are left stay readable, with `.cpu()`."""
    if _active:
        _active.pop().end()


@contextmanager
def pose(name: str, count: int = 1) -> Iterator[None]:
    """Pose as a GPU inside the `with` block. See `use`."""
    outer = _active[-1] if _active else None
    use(name, count)
    try:
        yield
    finally:
        off()
        if outer is not None:
            outer.begin()
            _active.append(outer)


def summary() -> Summary:
    """The work of the posed GPU since the program began to measure time: kernels, launches, time, what limits each.

    Of a GPU that is there, inside of `local()`, the measured times as well. Raises ArgumentError if no GPU is posed.
    """
    if _local:
        return _local[-1].summary()
    if not _active:
        raise ArgumentError(
            "no GPU is posed", hint='call flydsl.gpu.use("mi300x"), or run python -m flydsl.gpu mi300x script.py'
        )
    now = _active[-1]
    kernels = sorted((time for time in now.launches.table if time.launches), key=lambda time: -time.total_us)
    return Summary(
        now.product, tuple(kernels), now.operators.count, now.operators.time_us, dict(now.launches.not_timed)
    )


def report() -> str:
    """The text of `summary()`."""
    return str(summary())


@contextmanager
def local() -> Iterator[None]:
    """Measure the launches of the `with` block on the GPU that is there, and estimate them, for `report()`.

    Raises DeviceError if torch has no AMD GPU.
    """
    if not (torch.cuda.is_available() and torch.version.hip) or _active:
        raise DeviceError("torch has no AMD GPU here", hint='simulate one with pose("mi300x")')
    from flydsl.gpu.measured import LocalGpu

    found = LocalGpu()
    _local.append(found)
    found.begin()
    try:
        yield
    finally:
        found.end()
        _local.remove(found)


def watch() -> None:
    """Estimate the time of every launch from now on, not only from the first event that measures time on."""
    CLOCK.is_watched = True


def posed() -> Product | None:
    """The GPU that poses now."""
    return _active[-1].product if _active else None
