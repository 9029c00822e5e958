"""All-reduce over the GPUs of a node without a library: `custom_all_reduce_kernel` and the memory that it needs.

    dist.init_process_group("gloo")  # one process for each GPU, as torchrun starts them
    ar = FlyDSLAllreduce(group=dist.group.WORLD, device="cpu", max_size=8 << 20, world_size=n, rank=r, full_nvlink=True)
    out = ar.custom_all_reduce(inp)  # the sum over the ranks, in f32, rounded once; the same bits on every rank

The device is a HIP device or, for simulated GPUs, "cpu"; the code is the same. Every rank makes the same calls, in the
same order, with tensors of the same size and type.

Each rank has a signal struct followed by `tmp`, uncached, an input and an output buffer, which the others open by their
handles. Calls copy their input there, whatever its size and alignment. Registered calls (`*_reg`, and all inside
`capture`) read the tensors where they are: the ranks exchange handles of the allocations that contain them. Handles
travel as bytes, through torch.distributed, and nothing is unpickled.

Inside `capture` nothing is exchanged: kernels get arrays of pointers that are filled when the block ends. On a GPU
torch's graph captures the launches; simulated ones are kept, and `replay()` of what the block is given runs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flydsl.expr as fx
from flydsl.errors import ArgumentError, DeviceError
from flydsl.runtime.device import device_at, target_arch, use_device
from flydsl.runtime.device_memory import hipDeviceMallocDefault, hipDeviceMallocUncached, hipMemcpyDeviceToDevice
from flydsl.runtime.host_tensors import remember
from kernels import custom_all_reduce_kernel as kernel
from kernels.kernels_common import GFX942, dtype_str, require
from kernels.node_memory import NodeMemory

MAX_SIZE = 128 << 20


def meta_size() -> int:
    """The bytes of signals that a caller has to allocate: none, they are allocated here."""
    return 0


def init_custom_ar(
    meta: Any, rank_data: Any, handles: Sequence[Any], offsets: Sequence[int], rank: int, full_nvlink: bool,
    out: Any = None, max_size: int = MAX_SIZE,
) -> FlyDSLAllreduce:  # fmt: skip
    """The all-reduce of the ranks of torch.distributed, for code that manages handles itself.

    meta, or else rank_data: a tensor on the device. handles, offsets: one for each rank, not used. out: not used.
    Raises ArgumentError where their numbers differ.
    """
    import torch.distributed as dist

    require(len(handles) == len(offsets), f"{len(handles)} handles and {len(offsets)} offsets", "one of each per rank")
    device = (rank_data if meta is None else meta).device
    group = dist.group.WORLD
    return FlyDSLAllreduce(group=group, device=device, max_size=max_size, world_size=len(offsets), rank=rank,
                           full_nvlink=full_nvlink)  # fmt: skip


class Recording:
    """The launches of a `capture` of simulated GPUs."""

    def __init__(self) -> None:
        self._launches: list[Callable[[], None]] = []

    def add(self, launch: Callable[[], None]) -> None:
        self._launches.append(launch)

    def replay(self) -> None:
        """Run the launches again, with what the tensors hold now. Every rank does."""
        for launch in self._launches:
            launch()


class FlyDSLAllreduce:
    """The memory that a rank shares, and the collective calls.

    group: of torch.distributed. device: torch's. max_size: bytes of each buffer; inputs may have half of it.
    full_nvlink: whether every GPU reaches every other one. Creating one is a collective call, as are the others.
    """

    def __init__(
        self, *, group: Any, device: Any, max_size: int = MAX_SIZE, world_size: int, rank: int, full_nvlink: bool
    ) -> None:
        require(world_size in kernel.WORLD_SIZES, f"world_size={world_size}", "2 to 8 GPUs")
        require(0 <= rank < world_size, f"rank={rank} of {world_size}", "a rank of the group")
        require(max_size > 0 and max_size % kernel.PACK_BYTES == 0, f"max_size={max_size}", "a multiple of 16 bytes")
        self.world_size, self.rank, self.max_size = world_size, rank, max_size
        self._place, self._full = str(device), full_nvlink
        self._node = NodeMemory(group, self._place, world_size, rank)
        self._memory = self._node.memory
        self._recording: Recording | None = None
        self._is_capturing = False
        self._pending: list[tuple[int, int]] = []
        self._share()

    def _share(self) -> None:
        """Allocate, and open the memory of the others."""
        signal_bytes = kernel.SIGNAL_BYTES
        self._signal = self._node.allocate(signal_bytes + 2 * self.max_size, hipDeviceMallocUncached)
        self._memory.hipMemset(self._signal, 0, signal_bytes)
        self._input, self._output = (self._node.allocate(self.max_size, hipDeviceMallocDefault) for _ in range(2))
        self._memory.hipDeviceSynchronize()
        signals, inputs, outputs = (self._node.everywhere(a) for a in (self._signal, self._input, self._output))
        tmp = [address + signal_bytes for address in signals]
        self._signals, self._outputs, self._tmp = (self._node.table(entries) for entries in (signals, outputs, tmp))
        self._inputs, self._rotated_tmp = (self._node.table(self._node.rotated(entries)) for entries in (inputs, tmp))

    # --- calls

    def should_custom_ar(self, inp: Any) -> bool:
        """True for what `custom_all_reduce` takes: f32, f16 or bf16, contiguous, at most half of max_size."""
        size = inp.numel() * inp.element_size()
        is_connected = self.world_size == 2 or self._full
        return dtype_str(inp) in kernel.DTYPES and inp.is_contiguous() and size <= self.max_size // 2 and is_connected

    def custom_all_reduce(
        self, inp: Any, *, out: Any = None, use_new: bool = True, open_fp8_quant: bool = False, validate: bool = True,
        stream_ptr: int | None = None,
    ) -> Any:  # fmt: skip
        """The sum over all ranks, or None where `should_custom_ar` is false, or fp8 is asked for.

        out: a contiguous tensor of the input's size, by default a new one. use_new: taken and not used. validate:
        False promises that the input is one that it takes.
        """
        if open_fp8_quant or (validate and not self.should_custom_ar(inp)):
            return None
        return self._all_reduce(inp, out, stream_ptr, registered=self._is_capturing)

    def all_reduce_reg(self, inp: Any, out: Any = None, *, stream_ptr: int | None = None) -> Any:
        """The sum over all ranks, each read where it is. The input lies in memory that other processes can open."""
        return self._all_reduce(self._checked(inp), out, stream_ptr, registered=True)

    def all_gather_reg(self, inp: Any, out: Any = None, *, stream_ptr: int | None = None) -> Any:
        """The inputs of all ranks, (world_size, *shape), each read where it is: whole packs of 16 bytes."""
        self._require_packs(self._checked(inp), 1)
        out = _result(inp, (self.world_size, *inp.shape), out)
        return self._of_inputs(kernel.make_all_gather_kernel, inp, out, self._plan(inp).packs, stream_ptr)

    def reduce_scatter_reg(self, inp: Any, out: Any = None, *, stream_ptr: int | None = None) -> Any:
        """This rank's part, one world_size-th, of the sum over all ranks, each read where it is: whole packs."""
        self._require_packs(self._checked(inp), self.world_size)
        out = _result(inp, (inp.numel() // self.world_size,), out)
        return self._of_inputs(kernel.make_reduce_scatter_kernel, inp, out, self._plan(inp).part, stream_ptr)

    @contextmanager
    def capture(self) -> Iterator[Recording | None]:
        """Register the inputs of the calls inside when the block ends: a graph of torch captures them, for instance.

        Gives, for simulated GPUs, a `Recording`. Its inputs that other processes cannot open are copied at each replay.
        """
        if self._is_capturing:
            raise ArgumentError("capture inside capture", hint="call it once at a time")
        self._node.reserve_tables()
        self._is_capturing = True
        self._recording = Recording() if self._place == "cpu" else None
        try:
            yield self._recording
            self._fill_pending()
        finally:
            self._is_capturing, self._recording = False, None
            self._pending.clear()

    def close(self) -> None:
        """Give the memory back. Calls that other ranks still make fail there."""
        self._node.close()

    # --- how a call runs

    def _all_reduce(self, inp: Any, out: Any, stream: int | None, *, registered: bool) -> Any:
        out = _result(inp, inp.shape, out)
        if not inp.numel():
            return out
        remember(inp, out)
        plan, size = self._plan(inp), _size_bytes(inp)
        launchers = kernel.make_allreduce_kernels(N=plan.elements, dtype_str=plan.dtype, world_size=plan.world)
        chosen = self._choice(size)
        if chosen == "run_2stage_write_mode":
            staged = not _is_whole(inp)
            own = self._input if staged else inp.data_ptr()
            pointers = [own, self._outputs, self._tmp]
        else:
            inputs, staged = self._inputs_of(inp) if registered else (self._inputs, True)
            target = out.data_ptr() if _is_whole(out) else self._output
            pointers = [inputs, *([self._rotated_tmp] if chosen == "run_2stage_arr" else []), target]
        blocks = plan.blocks(plan.packs if chosen == "run_1stage_arr" else plan.part)

        def launch() -> None:
            if staged:
                self._copy(self._input, inp.data_ptr(), size, stream)
            self._start(launchers[chosen], blocks, pointers, stream)
            if pointers[-1] != out.data_ptr():
                self._copy(out.data_ptr(), self._output, size, stream)

        self._issue(launch)
        return out

    def _of_inputs(self, make: Any, inp: Any, out: Any, packs: int, stream: int | None) -> Any:
        """Run a kernel that reads the registered inputs of all ranks. packs: of the longest part that a block has."""
        if not inp.numel():
            return out
        remember(inp, out)
        plan = self._plan(inp)
        launcher = make(N=plan.elements, dtype_str=plan.dtype, world_size=plan.world)
        inputs, staged = self._inputs_of(inp)

        def launch() -> None:
            if staged:
                self._copy(self._input, inp.data_ptr(), _size_bytes(inp), stream)
            self._start(launcher, plan.blocks(packs), [inputs, out.data_ptr()], stream)

        self._issue(launch)
        return out

    def _plan(self, inp: Any) -> kernel.Plan:
        """The plan of a tensor, filled up to whole packs."""
        each = kernel.PACK_BYTES // inp.element_size()
        return kernel.Plan(elements=-(-inp.numel() // each) * each, dtype=dtype_str(inp), world=self.world_size)

    def _choice(self, size_bytes: int) -> str:
        """The launcher for a size."""
        if self.world_size == 2 or size_bytes < (160 << 10 if self.world_size == 4 else 80 << 10):
            return "run_1stage_arr"
        is_large = size_bytes > 4 << 20 and self.world_size == 8 and target_arch(self._place).startswith(GFX942)
        return "run_2stage_write_mode" if is_large else "run_2stage_arr"

    def _issue(self, launch: Callable[[], None]) -> None:
        """Launch now; or, where simulated GPUs are captured, when that is replayed."""
        if self._recording is None:
            launch()
        else:
            self._recording.add(launch)

    def _start(self, launcher: Any, blocks: int, pointers: list[int], stream: int | None) -> None:
        with use_device(device_at(self._place)):
            launcher(self.rank, blocks, self._signal, self._signals, *pointers, fx.Stream(stream))

    def _copy(self, target: int, source: int, size_bytes: int, stream: int | None) -> None:
        stream = device_at(self._place).stream_handle(stream)
        self._memory.hipMemcpyAsync(target, source, size_bytes, hipMemcpyDeviceToDevice, stream)

    def _checked(self, inp: Any) -> Any:
        """An input of a registered call. Raises ArgumentError unless `should_custom_ar` is true."""
        shown = f"an input of {inp.numel()} {dtype_str(inp)} with strides {tuple(inp.stride())}"
        wanted = f"f32, f16 or bf16, contiguous, of at most {self.max_size // 2} bytes; of fully connected GPUs"
        require(self.should_custom_ar(inp), shown, wanted)
        return inp

    @staticmethod
    def _require_packs(inp: Any, parts: int) -> None:
        """Raise ArgumentError unless an input divides into equal parts of whole packs."""
        whole = kernel.PACK_BYTES * parts
        fits = _size_bytes(inp) % whole == 0 and inp.data_ptr() % kernel.PACK_BYTES == 0
        shown = f"an input of {_size_bytes(inp)} bytes at {inp.data_ptr():#x}"
        require(fits, shown, f"a multiple of {whole} bytes, at one of {kernel.PACK_BYTES}")

    # --- memory

    def _inputs_of(self, inp: Any) -> tuple[int, bool]:
        """The array of pointers to all ranks' inputs, and whether this rank's is to be copied to its buffer.

        Inside `capture` the array is filled later.
        """
        address, staged = self._readable(inp)
        table = self._node.new_table()
        if self._is_capturing:
            self._pending.append((table, address))
        else:
            self._fill([(table, address)])
        return table, staged

    def _readable(self, inp: Any) -> tuple[int, bool]:
        """The address at which the others read an input: its own, or the input buffer's, to which it is then copied."""
        if not _is_whole(inp):
            return self._input, True
        if self._recording is not None:  # simulated: a copy is cheap
            try:
                self._memory.hipIpcGetMemHandle(inp.data_ptr())
            except DeviceError:
                return self._input, True
        return inp.data_ptr(), False

    def _fill_pending(self) -> None:
        """Register what was captured."""
        counts = [int.from_bytes(n, "little") for n in self._node.exchange(len(self._pending).to_bytes(8, "little"))]
        if len(set(counts)) > 1:
            raise DeviceError(f"ranks captured {counts} calls", hint="every rank makes the same calls")
        self._fill(self._pending)
        self._node.meet()

    def _fill(self, tables: Sequence[tuple[int, int]]) -> None:
        """Exchange addresses, and fill arrays of pointers with those of all ranks, this rank's first."""
        if not tables:
            return
        for content, (table, _) in zip(self._node.places([address for _, address in tables]), tables, strict=True):
            self._node.write_table(table, self._node.rotated(content))
        self._memory.hipDeviceSynchronize()


def _size_bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _is_whole(tensor: Any) -> bool:
    """True for a tensor of whole packs, that begins at one."""
    return _size_bytes(tensor) % kernel.PACK_BYTES == 0 and tensor.data_ptr() % kernel.PACK_BYTES == 0


def _result(inp: Any, shape: Sequence[int], out: Any) -> Any:
    """The tensor for a result: `out` if it fits, or a new one. Raises ArgumentError."""
    import torch

    if out is None:
        return torch.empty(shape, dtype=inp.dtype, device=inp.device)
    fits = out.numel() == math.prod(shape) and out.dtype == inp.dtype and out.is_contiguous()
    require(fits and out.device == inp.device, f"out {tuple(out.shape)} of {out.dtype} on {out.device}",
            f"{tuple(shape)} of {inp.dtype} on {inp.device}, contiguous")  # fmt: skip
    return out
