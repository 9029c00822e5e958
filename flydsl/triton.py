"""Triton's kernels on the simulator: `@triton.jit` functions, compiled by Triton's AMD backend, on CPU tensors.

    import flydsl.triton

    flydsl.triton.activate()  # or `with flydsl.triton.active(): ...`
    add_kernel[(4,)](x, y, out, n, BLOCK=256)

Triton is an extra: `pip install flydsl-workbench[triton]`. Its driver is what runs the machine code that it compiles;
this one launches it on the simulator, for the architecture that FlyDSL compiles for. Launches show themselves as those
of other code objects do: inside `%%flykernel`, and `flydsl.triton.module_of(kernel)` is the module of what
`kernel[grid](...)` returns, with its levels, from TTIR to the listing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.arch import get_arch
from flydsl.arch.products import product_of
from flydsl.binary import BinaryModule
from flydsl.codegen import CodeObject
from flydsl.compiler.debugging.missing_waits import warn_of_missing_waits
from flydsl.compiler.user_error import user_facing
from flydsl.errors import ArgumentError, DeviceError
from flydsl.errors.places import treat_as_library
from flydsl.hsaco import read_hsaco
from flydsl.runtime.device import is_posing, target_arch
from flydsl.sweeps.bench import estimated

if TYPE_CHECKING:
    from triton.compiler import CompiledKernel

_LEVELS = ("ttir", "ttgir", "llir")


def activate() -> None:
    """Make Triton launch on the simulator from now on. Raises DeviceError if Triton is not installed."""
    _config().set_active(_driver())


def deactivate() -> None:
    """Restore Triton's own driver; without a GPU it has none."""
    _config()._active = None


@contextmanager
def active() -> Iterator[None]:
    """Make Triton launch on the simulator inside the `with` block."""
    config = _config()
    before, config._active = config._active, _driver()
    try:
        yield
    finally:
        config._active = before


_OLDEST = (3, 7)


def module_of(kernel: CompiledKernel) -> BinaryModule:
    """The code object of a compiled kernel: what `kernel[grid](...)` and `kernel.warmup(...)` return."""
    if not hasattr(kernel, "metadata") or not hasattr(kernel, "asm"):
        raise ArgumentError(
            f"a compiled kernel is needed, got {type(kernel).__name__}",
            hint="pass what kernel[grid](...) or kernel.warmup returns",
        )
    return _module(kernel.metadata.hash, kernel.metadata.name, _file_name(kernel.src), _argument_names(kernel.src))


def _config() -> Any:
    try:
        import triton
        from triton.runtime.driver import driver
    except ImportError as error:
        raise DeviceError(f"Triton is not installed: {error}", hint="pip install triton") from None
    if tuple(map(int, triton.__version__.split(".")[:2])) < _OLDEST:  # torch brings one of its own
        raise DeviceError(
            f"Triton {triton.__version__} launches kernels in another way: {_OLDEST[0]}.{_OLDEST[1]} is the oldest "
            "that runs on the simulator",
            hint=f"pip install 'triton>={_OLDEST[0]}.{_OLDEST[1]}'",
        )
    return driver


_DEVICES = 1000
_numbers: dict[str, int] = {}
"""By architecture, in the order in which they were first compiled for."""


def _cuda() -> Any:
    import torch

    return torch.cuda


def simulator_driver() -> Any:
    """The driver that launches on the simulator, for `triton.runtime.driver`. Needs Triton."""
    return _driver()


@cache
def _driver() -> Any:
    """The driver. Its class derives from Triton's, which is imported when first needed."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    treat_as_library(str(Path(triton.__file__).parent))

    class SimulatorDriver(DriverBase):
        """Triton's view of the simulator: one device, one stream, memory of the host."""

        def __init__(self) -> None:
            self.utils = SimpleNamespace(
                get_device_properties=lambda device: _properties(), load_binary=_load, unload_module=lambda module: None
            )
            self.launcher_cls = _Launcher

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            raise DeviceError("the simulator compiles no launchers in C++")

        def get_current_target(self) -> Any:
            arch = get_arch(target_arch("cpu"))
            return GPUTarget("hip", arch.name, arch.wave_size)

        def get_current_device(self) -> int:
            """The number of the device; of every architecture another one, by which Triton keeps what it compiled."""
            number = _numbers.setdefault(target_arch("cpu"), len(_numbers))
            return _DEVICES * number + (_cuda().current_device() if is_posing() else 0)

        def set_current_device(self, device: int) -> None:
            device %= _DEVICES
            if is_posing():
                _cuda().set_device(device)
            elif device != 0:
                raise DeviceError(f"there is no device {device}: the simulator is device 0")

        def get_current_stream(self, device: int) -> int:
            return 0

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("cuda", _cuda().current_device()) if is_posing() else torch.device("cpu")

        def get_device_interface(self) -> Any:
            if is_posing():
                return _cuda()
            raise DeviceError(
                "the simulator has no streams and events of torch",
                hint='flydsl.gpu.use("mi300x") makes torch have them',
            )

        def get_empty_cache_for_benchmark(self) -> None:
            """Nothing: launches are timed with empty caches, as Triton's benchmark wishes."""

        def clear_cache(self, cache: None) -> None:
            pass

        def get_benchmarker(self) -> Callable[..., Any]:
            return _estimated

    return SimulatorDriver()


def _properties() -> dict[str, Any]:
    """The figures that Triton's driver for HIP gives, of the GPU that poses or of the architecture's best known one."""
    arch = get_arch(target_arch("cpu"))
    product = product_of(arch.name)
    return {
        "arch": arch.name,
        "warpSize": arch.wave_size,
        "max_shared_mem": arch.lds_bytes_per_workgroup,
        "max_num_regs": arch.compute_unit_registers,
        "max_threads_per_sm": arch.max_waves_per_simd * arch.lds_simds * arch.wave_size,
        "multiprocessor_count": _cuda().get_device_properties().multi_processor_count
        if is_posing()
        else product.multiprocessors,
        "sm_clock_rate": product.clock_mhz * 1000,
        "cooperativeLaunch": False,
    }


def _load(name: str, binary: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
    """The facts that Triton asks of a loaded kernel: two handles, its registers, its spills, its largest workgroup."""
    kernel = next(iter(read_hsaco(binary).kernels.values()))
    return name, name, kernel.total_vgprs, kernel.vgpr_spills, kernel.max_workgroup_size


def _estimated(call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **options: Any) -> Any:
    """The estimated time of a call in ms, for Triton's autotuner: it does not vary."""
    time_ms = estimated(call).estimate.time_us / 1000
    return time_ms if quantiles is None else [time_ms] * len(quantiles)


class _Launcher:
    """Launches one compiled kernel; Triton makes it of what it has compiled, and calls it with every launch."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self._metadata = metadata
        self._module = _module(metadata.hash, metadata.name, _file_name(src), _argument_names(src))
        self._kernel = self._module.kernel(metadata.name)
        self._types = tuple(src.signature.values())
        if metadata.num_ctas != 1 or metadata.launch_cooperative_grid:
            raise DeviceError(f"{metadata.name}: clusters and cooperative launches are unsupported on the simulator")
        if getattr(metadata, "tensordesc_meta", None):
            raise DeviceError(
                f"{metadata.name} takes descriptors of the tensor data mover from the host, which are unsupported",
                hint="tl.make_tensor_descriptor makes one in the kernel",
            )

    @user_facing
    def __call__(self, x: int, y: int, z: int, stream: Any, function: Any, packed: Any, *rest: Any) -> None:
        """Launch. rest: Triton's metadata of the launch, the hooks before and after it, and the arguments."""
        about, enter, leave, *args = rest
        if enter is not None:
            enter(about)
        if x * y * z > 0:
            self._launch((x, y, z), args)
        if leave is not None:
            leave(about)

    def _launch(self, grid: tuple[int, int, int], args: Sequence[Any]) -> None:
        metadata, info = self._metadata, self._kernel.resources.info
        values = list(_flat_values(args, self._types))
        blocks = grid[0] * grid[1] * grid[2]
        of_all_blocks = getattr(metadata, "global_scratch_size", 0)  # Triton 3.7 has none, but a null pointer
        scratch = [_scratch(blocks * size) for size in (of_all_blocks, metadata.profile_scratch_size)]
        smem = metadata.shared if info.lds_bytes == 0 else 0
        block = metadata.num_warps * metadata.warp_size
        self._kernel(*values, *scratch[: len(self._kernel.parameters) - len(values)], grid=grid, block=block, smem=smem)


def _flat_values(values: Sequence[Any], kinds: Sequence[Any]) -> Iterator[Any]:
    """Arguments as the kernel takes them: without tuples and compile-time values. A tensor descriptor is its tensor,
    shape, strides and two flags, and shape and strides again.

    kinds: the type of each value in Triton's signature, and a tuple of types of a tuple.
    """
    for value, kind in zip(values, kinds, strict=True):
        if isinstance(kind, tuple | list):
            yield from _flat_values(value, kind)
        elif str(kind).startswith("tensordesc"):
            place = (*value.shape, *value.strides)
            yield from (_plain(value.base), *place, value.padding == "nan", value.round_f32_to_tf32, *place)
        elif kind != "constexpr":
            yield _plain(value)


def _plain(value: Any) -> Any:
    """An argument as binary kernels take it: Triton's view of a tensor as another type is the tensor."""
    return value.base if type(value).__name__ == "TensorWrapper" else value


def _scratch(size_bytes: int) -> np.ndarray[Any, Any] | None:
    return np.zeros(size_bytes, np.uint8) if size_bytes else None


def _file_name(src: Any) -> str:
    """The name under which Triton keeps what it compiled of a source."""
    return str(src.name)[:150]


def _argument_names(src: Any) -> tuple[str, ...]:
    """The names of the arguments that the kernel takes: without the compile-time ones, and with Triton's own two."""
    names = [str(name) for name, kind in src.signature.items() if kind != "constexpr"]
    return (*names, "global scratch", "profile scratch")


@cache
def _module(key: str, kernel: str, name: str, arguments: tuple[str, ...]) -> BinaryModule:
    """The module that Triton keeps in its cache under a key, and a file name. kernel: its symbol."""
    from triton.runtime.cache import get_cache_manager

    files = get_cache_manager(key).get_group(f"{name}.json") or {}
    paths = {path.rpartition(".")[2]: path for path in files.values()}
    if "hsaco" not in paths or "amdgcn" not in paths:
        raise DeviceError(
            f"Triton's cache has no machine code and listing of {name}", hint="TRITON_STORE_BINARY_ONLY must not be set"
        )
    texts = {level: Path(paths[level]).read_text("utf-8") for level in (*_LEVELS, "amdgcn") if level in paths}
    # Not compared by assembling the listing: the two are of one compilation, by an LLVM that is newer than ours.
    hsaco, listing = Path(paths["hsaco"]).read_bytes(), texts.pop("amdgcn")
    arch = get_arch(read_hsaco(hsaco).arch_name)
    code = CodeObject(arch, texts.get("llir", ""), 3, b"", hsaco, listing)
    warn_of_missing_waits(code)
    return BinaryModule(code, "Triton", texts, argument_names={kernel: arguments})
