"""Load a code object from a file and launch its kernels with numpy arrays.

module = load("vector_add.hsaco")
module.kernel("vector_add_kernel").launch(grid=(4, 1, 1), block=(256, 1, 1), args=[a, b, c, 1024])
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import ArgumentError, MissingFile
from flydsl.errors.places import open_folder
from flydsl.hsaco import KernelArg
from flydsl.hsaco.listing import ListingError
from flydsl.hsaco.same_code import check_listing as compare
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.dispatch import LaunchStatistics
from flydsl.simulator.launching import launch, prepare
from flydsl.simulator.memory.buffers import Memory

if TYPE_CHECKING:
    from flydsl.simulator.stepping.simulation import Simulation

_HOW_TO_GET_ONE = (
    "write artifact.code.listing to a file when compiling, or take *_final_isa.s of a FLYDSL_DUMP_IR folder; "
    "other compilers write it with -S"
)


def load(code: str | Path | bytes, listing: str | Path | None = None, *, check_listing: bool = True) -> LoadedModule:
    """Load a linked code object: its bytes, or the path of a file.

    listing: the assembly that the code object was made from, which is what the simulator decodes: a path, or the text
    itself (which has more than one line). By default the file beside the code object with the suffix .s.
    check_listing: assemble it, and compare the bytes. A listing that was compiled apart from the code object, and has
    other registers, runs as the code object has it, with a warning. If False, the listing runs, whatever the code
    object holds.

    Raises HsacoError if it is not a code object, ListingError if the listing is missing or belongs to something else,
    and OSError for files that cannot be read.
    """
    data = code if isinstance(code, bytes) else _read(Path(code))
    text = _listing_text(code, listing)
    for opened in (code, listing):
        if isinstance(opened, Path) or (isinstance(opened, str) and "\n" not in opened):
            open_folder(opened)
    program = Program.load(data, text)
    if check_listing and (own := compare(data, text)) != text:
        program = Program.load(data, own)
    return LoadedModule(program)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingFile(f"there is no file {path}", hint="pass a path of a code object, or its bytes") from None


def _listing_text(code: str | Path | bytes, listing: str | Path | None) -> str:
    if isinstance(listing, str) and "\n" in listing:
        return listing
    if listing is not None:
        return _read_text(Path(listing))
    if isinstance(code, bytes):
        raise ListingError("a code object alone is not enough: the simulator decodes its listing", hint=_HOW_TO_GET_ONE)
    beside = Path(code).with_suffix(".s")
    if not beside.exists():
        raise ListingError(
            f"there is no {beside.name} beside {Path(code).name}: the simulator decodes the listing of a code object",
            hint=_HOW_TO_GET_ONE,
        )
    return _read_text(beside)


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise MissingFile(
            f"there is no file {path}", hint="the listing is a path, or a text of several lines"
        ) from None
    except UnicodeDecodeError:
        raise ListingError(f"{path.name} is not text, and so no listing", hint=_HOW_TO_GET_ONE) from None


@dataclass(frozen=True, eq=False)
class Struct:
    """An argument that is more than one array or number: a struct, or a table of pointers.

    Struct(a, b, c) is three addresses; Struct(a, np.int32(4), None) an address, a number and a null pointer. For a
    value the parts lie in the argument itself; for a pointer they are memory that it points to, which the kernel may
    not write. Parts: C-contiguous arrays, None, numbers with a size, bytes (padding has to be written out: nothing is
    aligned here) and other Structs, whose parts go in their place.
    """

    parts: tuple[Any, ...]

    def __init__(self, *parts: Any) -> None:
        object.__setattr__(self, "parts", parts)

    def content(self, name: str, memory: Memory) -> bytes:
        """The bytes; the arrays are mapped into memory. ArgumentError for a value without a known size."""
        return b"".join(self._part(f"{name}[{i}]", part, memory) for i, part in enumerate(self.parts))

    def _part(self, name: str, part: Any, memory: Memory) -> bytes:
        if part is None:
            return bytes(8)
        if isinstance(part, Struct):
            return part.content(name, memory)
        if isinstance(part, np.ndarray):
            return _address(name, part, memory)
        if isinstance(part, (np.generic, bytes)):
            return part if isinstance(part, bytes) else part.tobytes()
        raise ArgumentError(f"{name}: {part!r} does not say its size", hint="pass a numpy number such as np.int32(1)")


@dataclass(frozen=True)
class LoadedModule:
    """A code object that is ready to run."""

    program: Program

    def __repr__(self) -> str:
        return f"LoadedModule({self.program.arch.name}: {', '.join(self.program.kernels) or 'no kernel'})"

    @property
    def kernels(self) -> Mapping[str, LoadedKernel]:
        return {name: LoadedKernel(self.program, name) for name in self.program.kernels}

    def kernel(self, name: str) -> LoadedKernel:
        """The kernel of this name. ArgumentError if there is none."""
        if name not in self.program.kernels:
            raise ArgumentError(f"there is no kernel {name!r}", hint=f"there are {', '.join(self.program.kernels)}")
        return LoadedKernel(self.program, name)


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel of a loaded module. name: its symbol.

    pack: makes the bytes of an argument; by default those of `launch` below. new_memory: makes the memory that a launch
    reaches. title: the kernel's name in errors. names: of its parameters, where the code object does not have them.
    """

    program: Program
    name: str
    pack: Callable[[KernelArg, Any, Memory], bytes] | None = None
    new_memory: Callable[[], Memory] = Memory
    title: str = ""
    names: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[KernelArg, ...]:
        """Its arguments as the code object describes them."""
        explicit = [arg for arg in self.program.kernels[self.name].args if not arg.kind.startswith("hidden_")]
        return named(explicit, self.names)

    def launch(self, grid: Dim3, block: Dim3, args: Sequence[Any], smem: int = 0) -> LaunchStatistics:
        """Run the kernel. grid counts workgroups, block threads, smem bytes of dynamic LDS.

        args: in the order of `parameters`. A C-contiguous numpy array for a pointer, which the kernel reads and writes
        in place; for a value a number with a size (np.float32(2), np.int64(5)), a Python int or float for 4 or 8 bytes,
        or its bytes; `Struct` for either, where the addresses of arrays are inside. Raises ArgumentError for what does
        not fit, and what `launch` raises.
        """
        memory = self.new_memory()
        kernarg = self._kernarg(args, memory)
        return launch(
            self.program, self.name, grid=grid, block=block, kernarg=kernarg, memory=memory, dynamic_lds_bytes=smem
        )

    def simulate(
        self, grid: Dim3, block: Dim3, args: Sequence[Any], smem: int = 0, *, workgroup: Dim3 = (0, 0, 0)
    ) -> Simulation:
        """The same launch, instruction by instruction: see `Simulation`."""
        from flydsl.simulator.stepping.simulation import Simulation

        memory = self.new_memory()
        kernarg = self._kernarg(args, memory)
        prepared = prepare(
            self.program, self.name, grid=grid, block=block, kernarg=kernarg, memory=memory, dynamic_lds_bytes=smem
        )
        return Simulation([prepared], workgroup, keep_alive=list(args))

    def _kernarg(self, args: Sequence[Any], memory: Memory) -> bytes:
        parameters = self.parameters
        labelled = [p._replace(name=p.name or f"argument {i}") for i, p in enumerate(parameters)]
        if len(args) != len(labelled):
            raise ArgumentError(
                f"{self.title or self.name} takes {len(labelled)} arguments "
                f"({', '.join(p.name for p in labelled) or 'none'}), got {len(args)}",
                hint="pass one for each parameter, in their order; a tensor of a kernel of this package is its array, "
                "then its sizes and strides; the launch's size goes in grid= and block=",
            )
        pack = self.pack or packed
        segment = bytearray(self.program.kernels[self.name].kernarg_bytes)
        for parameter, value in zip(labelled, args, strict=True):
            data = pack(parameter, value, memory)
            segment[parameter.offset : parameter.offset + parameter.size] = data
        return bytes(segment)


def named(parameters: Sequence[KernelArg], names: Sequence[str]) -> tuple[KernelArg, ...]:
    """The parameters with these names, if there is one for each."""
    if len(names) != len(parameters):
        return tuple(parameters)
    return tuple(parameter._replace(name=name) for parameter, name in zip(parameters, names, strict=True))


def packed(parameter: KernelArg, value: Any, memory: Memory) -> bytes:
    """The bytes of an argument in the kernarg segment."""
    if isinstance(value, np.ndarray):
        if parameter.size != 8:
            raise ArgumentError(f"{parameter.name} must be a value of {parameter.size} bytes, got an array")
        return _address(parameter.name, value, memory)
    if isinstance(value, Struct):
        return _packed_struct(parameter, value, memory)
    if parameter.kind == "global_buffer":
        raise ArgumentError(
            f"{parameter.name} is a pointer and must be a numpy array or a Struct, got {value!r}",
            hint="pass tensor.numpy() for a tensor",
        )
    data = _value_bytes(parameter, value)
    if len(data) != parameter.size:
        raise ArgumentError(f"{parameter.name} must be {parameter.size} bytes, got {len(data)}: {value!r}")
    return data


def _packed_struct(parameter: KernelArg, value: Struct, memory: Memory) -> bytes:
    content = value.content(parameter.name, memory)
    if parameter.kind == "global_buffer":
        label = f"Struct of {len(value.parts)} parts"
        return struct.pack("<Q", memory.map_constant(content, name=parameter.name, label=label))
    if len(content) != parameter.size:
        raise ArgumentError(
            f"{parameter.name} must be {parameter.size} bytes, got a Struct whose parts have {len(content)}"
        )
    return content


def _address(name: str, array: np.ndarray[Any, Any], memory: Memory) -> bytes:
    return struct.pack("<Q", memory.map_array(array, name=name, writable=array.flags.writeable))


def _value_bytes(parameter: KernelArg, value: Any) -> bytes:
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, bytes):
        return value
    formats = {(int, 4): "<i", (int, 8): "<q", (float, 4): "<f", (float, 8): "<d"}
    code = formats.get((type(value), parameter.size))
    if code is None:
        raise ArgumentError(
            f"{parameter.name} has {parameter.size} bytes, and {value!r} does not say its type",
            hint="pass a numpy number such as np.float16(1), or its bytes",
        )
    try:
        return struct.pack(code, value)
    except (struct.error, OverflowError) as error:
        raise ArgumentError(f"{parameter.name}: {value!r} does not fit {parameter.size} bytes ({error})") from None
