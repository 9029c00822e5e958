"""AMD GPUs through HIP: `libamdhip64`, found where ROCm or torch put it, loaded at the first launch."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from flydsl import env
from flydsl.arch.launch_limits import Dim3
from flydsl.codegen import CodeObject
from flydsl.errors import ArchError, DeviceError
from flydsl.runtime.interface import Device, LoadedCode, NamedTensor, raw_stream
from flydsl.runtime.rocm import get_rocm_arch

_LIBRARY = "libamdhip64.so"


class HipDevice(Device):
    """A HIP device. index: as torch numbers it."""

    def __init__(self, index: int = 0) -> None:
        self.name = f"hip:{index}"
        self.index = index

    def address(self, argument: NamedTensor, session: Any) -> int:
        return int(argument.tensor.data_ptr())

    def stream_handle(self, stream: Any) -> int:
        handle = raw_stream(stream)
        if handle is not None:
            return handle
        import torch

        return int(torch.cuda.current_stream(self.index).cuda_stream)

    def load(self, code: CodeObject) -> LoadedCode:
        present = get_rocm_arch()
        if code.arch.name != present.split(":")[0]:
            raise ArchError(
                f"this was compiled for {code.arch.name}, and the GPU is {present}",
                hint="unset ARCH, or look at the result with .lower(...).artifact",
            )
        return _HipModule(code, self.index)


class _HipModule(LoadedCode):
    """A code object loaded by HIP on one device; a kernel's handle is looked up once."""

    def __init__(self, code: CodeObject, index: int) -> None:
        self._hip = hip_library()
        self._index = index
        self._module = ctypes.c_void_p()
        self._functions: dict[str, ctypes.c_void_p] = {}
        with _selected(self._hip, index):
            _check(self._hip, "hipModuleLoadData", ctypes.byref(self._module), code.hsaco)

    def launch(
        self, kernel: str, grid: Dim3, block: Dim3, dynamic_lds_bytes: int, stream: int, params: Any, session: Any
    ) -> None:
        sizes = [ctypes.c_uint(n) for n in (*grid, *block, dynamic_lds_bytes)]
        with _selected(self._hip, self._index):
            function = self._functions.get(kernel)
            if function is None:
                function = ctypes.c_void_p()
                _check(self._hip, "hipModuleGetFunction", ctypes.byref(function), self._module, kernel.encode())
                self._functions[kernel] = function
            _check(self._hip, "hipModuleLaunchKernel", function, *sizes, ctypes.c_void_p(stream), params, None)


@contextmanager
def _selected(hip: ctypes.CDLL, index: int) -> Iterator[None]:
    """Make a device HIP's current one of this thread, where modules are loaded and launched; then put it back."""
    before = ctypes.c_int()
    _check(hip, "hipGetDevice", ctypes.byref(before))
    if before.value == index:
        yield
        return
    _check(hip, "hipSetDevice", index)
    try:
        yield
    finally:
        _check(hip, "hipSetDevice", before.value)


@lru_cache(maxsize=1)
def hip_library() -> ctypes.CDLL:
    """HIP's runtime library. Raises DeviceError where there is none."""
    root = env.text("ROCM_PATH") or "/opt/rocm"
    found = ctypes.util.find_library("amdhip64")
    for candidate in (_LIBRARY, f"{root}/lib/{_LIBRARY}", *([found] if found else [])):
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise DeviceError(
        f"{_LIBRARY} is not to be found, so HIP tensors cannot be used",
        hint="install ROCm or set ROCM_PATH; CPU tensors run on the simulator",
    )


def _check(hip: ctypes.CDLL, name: str, *arguments: Any) -> None:
    """Call a HIP function; raise DeviceError with HIP's own words where it fails."""
    status = getattr(hip, name)(*arguments)
    if status:
        hip.hipGetErrorString.restype = ctypes.c_char_p
        raise DeviceError(f"{name} failed: {hip.hipGetErrorString(status).decode()} ({status})")
