"""AMD GPUs through HIP: `libamdhip64`, found where ROCm or torch put it, loaded at the first launch."""

from __future__ import annotations

import ctypes
import ctypes.util
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flydsl import env
from flydsl.arch.launch_limits import Dim3
from flydsl.codegen import CodeObject
from flydsl.errors import ArchError, DeviceError
from flydsl.runtime.device_memory import IPC_HANDLE_BYTES, DeviceMemory, hipIpcMemLazyEnablePeerAccess
from flydsl.runtime.interface import Device, LoadedCode, NamedTensor, PrintBuffer, raw_stream
from flydsl.runtime.rocm import get_rocm_arch

_LIBRARY = "libamdhip64.so"


class HipDevice(Device):
    """A HIP device. index: its number in torch."""

    def __init__(self, index: int = 0) -> None:
        self.name = f"hip:{index}"
        self.index = index

    def session(self) -> list[NamedTensor] | None:
        """The tensors of one call, for what is put around launches."""
        return None if _around is None else []

    def address(self, name: str, tensor: Any, session: list[NamedTensor] | None) -> int:
        argument = NamedTensor(name, tensor)
        if session is not None:
            session.append(argument)
        return argument.address

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

    def print_buffer(self, size_bytes: int) -> PrintBuffer:
        return _HipBuffer(size_bytes, self.index)


_TO_DEVICE, _TO_HOST = 1, 2  # hipMemcpyKind


class _HipBuffer(PrintBuffer):
    """Memory that HIP allocates, and that is freed with this object."""

    def __init__(self, size_bytes: int, index: int) -> None:
        self._hip = hip_library()
        self._index, self._size_bytes = index, size_bytes
        self._pointer = ctypes.c_void_p()
        with _selected(self._hip, index):
            _check(self._hip, "hipMalloc", ctypes.byref(self._pointer), ctypes.c_size_t(size_bytes))
        weakref.finalize(self, self._hip.hipFree, self._pointer)

    def address(self, session: Any) -> int:
        return self._pointer.value or 0

    def read(self, start: int, size_bytes: int, stream: int) -> bytes:
        content = ctypes.create_string_buffer(size_bytes)
        place, count = ctypes.c_void_p(self.address(None) + start), ctypes.c_size_t(size_bytes)
        with _selected(self._hip, self._index):
            _check(self._hip, "hipStreamSynchronize", ctypes.c_void_p(stream))
            _check(self._hip, "hipMemcpy", content, place, count, _TO_HOST)
        return content.raw

    def clear(self, header: bytes) -> None:
        with _selected(self._hip, self._index):
            _check(self._hip, "hipMemset", self._pointer, 0, ctypes.c_size_t(self._size_bytes))
            _check(self._hip, "hipMemcpy", self._pointer, header, ctypes.c_size_t(len(header)), _TO_DEVICE)
            _check(self._hip, "hipDeviceSynchronize")  # a kernel's stream may not wait for HIP's own


@dataclass(frozen=True)
class HipLaunch:
    """A launch on a HIP device. tensors: those of its call. params: as `LoadedCode.launch` takes them."""

    code: CodeObject
    kernel: str
    grid: Dim3
    block: Dim3
    dynamic_lds_bytes: int
    stream: int
    params: Any
    tensors: Sequence[NamedTensor]


_around: Callable[[HipLaunch, Callable[[], None]], None] | None = None


def put_around(around: Callable[[HipLaunch, Callable[[], None]], None] | None) -> None:
    """Have every launch through HIP made by a function, or by none (None): it gets the launch, and what makes it."""
    global _around
    _around = around


class _HipModule(LoadedCode):
    """A code object loaded by HIP on one device; a kernel's handle is looked up once."""

    def __init__(self, code: CodeObject, index: int) -> None:
        self._hip = hip_library()
        self._code, self._index = code, index
        self._module = ctypes.c_void_p()
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._clustered = {kernel.name for kernel in code.kernels if kernel.info.cluster}
        with _selected(self._hip, index):
            _check(self._hip, "hipModuleLoadData", ctypes.byref(self._module), code.hsaco)

    def launch(
        self, kernel: str, grid: Dim3, block: Dim3, dynamic_lds_bytes: int, stream: int, params: Any, session: Any
    ) -> None:
        def run() -> None:
            self._launch(kernel, grid, block, dynamic_lds_bytes, stream, params)

        if _around is None or session is None:
            run()
        else:
            _around(HipLaunch(self._code, kernel, grid, block, dynamic_lds_bytes, stream, params, session), run)

    def _launch(self, kernel: str, grid: Dim3, block: Dim3, dynamic_lds_bytes: int, stream: int, params: Any) -> None:
        sizes = [ctypes.c_uint(n) for n in (*grid, *block, dynamic_lds_bytes)]
        with _selected(self._hip, self._index):
            function = self._functions.get(kernel)
            if function is None:
                self._refuse_clusters(kernel)
                function = ctypes.c_void_p()
                _check(self._hip, "hipModuleGetFunction", ctypes.byref(function), self._module, kernel.encode())
                self._functions[kernel] = function
            _check(self._hip, "hipModuleLaunchKernel", function, *sizes, ctypes.c_void_p(stream), params, None)

    def _refuse_clusters(self, kernel: str) -> None:
        if kernel in self._clustered:
            raise DeviceError(
                f"launching {kernel} with clusters of workgroups through HIP is unsupported",
                hint="omit cluster=, or launch with CPU tensors, on the simulator",
            )


class _Handle(ctypes.Structure):
    """hipIpcMemHandle_t, which HIP takes by value."""

    _fields_ = [("reserved", ctypes.c_char * IPC_HANDLE_BYTES)]


class HipMemory(DeviceMemory):
    """The memory of a HIP device. index: its number in torch."""

    def __init__(self, index: int) -> None:
        self._hip, self._index = hip_library(), index

    def hipExtMallocWithFlags(self, size_bytes: int, flags: int) -> int:
        pointer = ctypes.c_void_p()
        self._call("hipExtMallocWithFlags", ctypes.byref(pointer), ctypes.c_size_t(size_bytes), ctypes.c_uint(flags))
        return pointer.value or 0

    def hipFree(self, address: int) -> None:
        self._call("hipFree", ctypes.c_void_p(address))

    def hipMemset(self, address: int, value: int, size_bytes: int) -> None:
        self._call("hipMemset", ctypes.c_void_p(address), value, ctypes.c_size_t(size_bytes))

    def hipMemcpyAsync(self, target: int, source: int, size_bytes: int, kind: int, stream: Any = None) -> None:
        places = ctypes.c_void_p(target), ctypes.c_void_p(source)
        handle = ctypes.c_void_p(raw_stream(stream))
        self._call("hipMemcpyAsync", *places, ctypes.c_size_t(size_bytes), kind, handle)

    def hipDeviceSynchronize(self) -> None:
        self._call("hipDeviceSynchronize")

    def hipMemGetAddressRange(self, address: int) -> tuple[int, int]:
        base, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._call("hipMemGetAddressRange", ctypes.byref(base), ctypes.byref(size), ctypes.c_void_p(address))
        return base.value or 0, size.value

    def hipIpcGetMemHandle(self, address: int) -> bytes:
        handle = _Handle()
        self._call("hipIpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(address))
        return bytes(handle)

    def hipIpcOpenMemHandle(self, handle: bytes, flags: int = hipIpcMemLazyEnablePeerAccess) -> int:
        if len(handle) != IPC_HANDLE_BYTES:
            raise DeviceError(f"a handle of {len(handle)} bytes: it has {IPC_HANDLE_BYTES}")
        pointer, given = ctypes.c_void_p(), _Handle.from_buffer_copy(handle)
        self._call("hipIpcOpenMemHandle", ctypes.byref(pointer), given, ctypes.c_uint(flags))
        return pointer.value or 0

    def hipIpcCloseMemHandle(self, address: int) -> None:
        self._call("hipIpcCloseMemHandle", ctypes.c_void_p(address))

    def _call(self, name: str, *arguments: Any) -> None:
        with _selected(self._hip, self._index):
            _check(self._hip, name, *arguments)


@contextmanager
def _selected(hip: ctypes.CDLL, index: int) -> Iterator[None]:
    """Make a device HIP's current one in this thread, for loading and launching modules; then restore the old one."""
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
    """HIP's runtime library. Raises DeviceError if it is missing."""
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
    """Call a HIP function; raise DeviceError with HIP's message if it fails."""
    status = getattr(hip, name)(*arguments)
    if status:
        hip.hipGetErrorString.restype = ctypes.c_char_p
        raise DeviceError(f"{name} failed: {hip.hipGetErrorString(status).decode()} ({status})")
