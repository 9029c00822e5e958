"""The interface that a launcher needs from a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flydsl.arch.launch_limits import Dim3
from flydsl.codegen import CodeObject
from flydsl.errors import ArgumentError, DeviceError
from flydsl.errors.places import user_location

READ_ONLY = "_flydsl_read_only"
"""The attribute of a tensor whose memory another library says must not be written; torch knows no such tensors."""


@dataclass(slots=True)
class NamedTensor:
    """A tensor as an argument of a launcher, by the name of its parameter."""

    name: str
    tensor: Any

    @property
    def size_bytes(self) -> int:
        """Bytes from the first element to the end of the last one that the strides reach."""
        return reach_bytes(self.tensor.shape, self.tensor.stride(), self.tensor.element_size())

    @property
    def address(self) -> int:
        """The address of its first element. ArgumentError for a tensor without memory, or with too little."""
        tensor = self.tensor
        try:
            storage = tensor.untyped_storage()  # a posed GPU keeps a tensor whose data_ptr() is asked for
            begin, size_bytes = tensor.storage_offset() * tensor.element_size(), self.size_bytes
            first = int(storage.data_ptr())
            has_memory = begin + size_bytes <= storage.nbytes() and bool(first or not size_bytes)
        except RuntimeError:  # in a transform of torch.func
            has_memory = False
        if not has_memory:
            raise ArgumentError(
                f"{self.name}: a tensor whose memory is not there: its storage was resized, or torch transforms it",
                at=user_location(),
                hint="pass a tensor of its own; flyc.custom_op makes an operator that torch can transform",
            )
        return first + begin

    @property
    def writable(self) -> bool:
        """False for memory that must not be written."""
        return not hasattr(self.tensor, READ_ONLY)

    @property
    def label(self) -> str:
        """Type and size, for messages."""
        return _label(self.tensor.dtype, self.tensor.shape)


@lru_cache
def reach_bytes(shape: tuple[int, ...], strides: tuple[int, ...], element_bytes: int) -> int:
    """Bytes from the first element to the end of the last one. Every launch asks, of the same few tensors mostly."""
    if 0 in shape:
        return 0
    return (sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1) * element_bytes


@lru_cache
def _label(dtype: Any, shape: tuple[int, ...]) -> str:
    """Type and size of a tensor."""
    return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"


class LoadedCode(ABC):
    """A code object on a device."""

    @abstractmethod
    def launch(
        self, kernel: str, grid: Dim3, block: Dim3, dynamic_lds_bytes: int, stream: int, params: Any, session: Any
    ) -> None:
        """Launch a kernel. params: a C array of pointers to its arguments. session: the call that it belongs to."""


class PrintBuffer(ABC):
    """Memory of a device for the output of kernels; see `flydsl.printing`."""

    @abstractmethod
    def address(self, session: Any) -> int:
        """The address at which the kernels of a call find the buffer."""

    @abstractmethod
    def read(self, start: int, size_bytes: int, stream: int) -> bytes:
        """Some of its bytes, read when all work on a stream has ended."""

    @abstractmethod
    def clear(self, header: bytes) -> None:
        """Clear everything but the header to 0."""


class Device(ABC):
    """A device that runs kernels.

    name: for people. A call of a launcher opens a session, gives every tensor an address in it, and launches.
    """

    name: str

    def session(self) -> Any:
        """The state of one call; None if a device needs none."""
        return None

    @abstractmethod
    def address(self, name: str, tensor: Any, session: Any) -> int:
        """The address at which kernels find a tensor. name: of the launcher's parameter."""

    @abstractmethod
    def stream_handle(self, stream: Any) -> int:
        """The raw handle of a stream argument: None, an int, or one of torch's objects."""

    @abstractmethod
    def load(self, code: CodeObject) -> LoadedCode:
        """Load a code object. Raises ArchError if the device does not run its architecture."""

    def print_buffer(self, size_bytes: int) -> PrintBuffer:
        """Memory for the output of kernels. Raises DeviceError if the device does not support printf."""
        raise DeviceError(f"printf on {self.name} is unsupported")

    def after_launch(self, flush: Callable[[], None], session: Any) -> None:
        """Call `flush` when a launch that prints has ended: at once, unless the device launches later."""
        flush()


def raw_stream(stream: Any) -> int | None:
    """The handle of a stream: an int, or torch's `cuda_stream`; None for None."""
    if stream is None or (isinstance(stream, int) and not isinstance(stream, bool)):
        return stream
    handle = getattr(stream, "cuda_stream", None)
    if handle is None:
        raise ArgumentError(
            f"stream must be an fx.Stream or None, got {stream!r}", hint="pass fx.Stream(torch.cuda.Stream()), or None"
        )
    return int(handle)
