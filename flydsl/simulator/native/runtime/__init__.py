"""The functions that handlers call, and the scheduler: C, compiled for the structures of `layout` by ziglang's clang.

`place.c` finds an address on the host, `resolve.c` those of 64 lanes, `move.c` moves data, `tensor.c` tiles,
`schedule.c` runs workgroups and waves, `count.c` counts, `trace.c` records what waves execute, `races.c` proves that
they do not race.
clang's output is LLVM IR without the host's CPU; `host` compiles it as it compiles the handlers.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import IO

from flydsl.errors import SimulatorError
from flydsl.hsaco.operands import CLUSTER_STATE, EXEC, ttmp
from flydsl.simulator.counters.raw import LINE_BYTES
from flydsl.simulator.memory import tensor_descriptor as tensor
from flydsl.simulator.memory.buffers import PRIVATE_APERTURE, SHARED_APERTURE, SLOT_SHIFT
from flydsl.simulator.native import layout
from flydsl.simulator.waves import ACCUMULATION_ROW, AT_BARRIER, AT_CLUSTER_BARRIER, ENDED, LANES, RUNNING
from flydsl.system.child_processes import end_child, start_child
from flydsl.system.temporary_files import NoRoomError, temporary_file
from flydsl.system.ziglang import find_zig

SNAPSHOT_INSTRUCTIONS, MOST_SNAPSHOT_INSTRUCTIONS = 256, 16_384
"""For how long a wave is compared with an earlier state: a loop in which it waits for memory is shorter."""

_PARTS = {
    "runtime": ("runtime.h", "place.c", "resolve.c", "move.c", "schedule.c"),
    "tiles": ("runtime.h", "place.c", "tensor.c"),
    "counting": ("runtime.h", "count.c"),
    "tracing": ("runtime.h", "place.c", "count.c", "trace.c"),
    "races": ("runtime.h", "races.c"),
}
_FLAGS = (
    *("-std=c23", "-O2", "-ffreestanding", "-fno-strict-aliasing", "-fno-asynchronous-unwind-tables"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-S", "-emit-llvm"),
)
_MOST_SECONDS = 300  # the translation takes less than one
_CPU_ATTRIBUTE = re.compile(r' "[\w-]+"(="[^"]*")?')
_ATTRIBUTES = re.compile(r"^attributes #\d+ = .*$", re.MULTILINE)
_TARGET = re.compile(r"^target (datalayout|triple) = .*\n", re.MULTILINE)


class Translation:
    """C that another process is translating to LLVM IR."""

    def __init__(self, text: str, triple: str) -> None:
        zig = find_zig()
        if zig is None:
            raise SimulatorError(
                "the simulator's runtime is C, and there is no compiler for it",
                hint="pip install ziglang; or use the lock-step backend: FLYDSL_SIMULATOR_BACKEND=lockstep",
            )
        command = [zig, "clang", "-target", triple, *_FLAGS, "-x", "c", "-", "-o", "-"]
        self._output = temporary_file()  # `result` closes it
        with _file_with(text) as content:  # all of it is there: clang waits for nobody
            try:
                self._process = start_child(
                    command, stdin=content, stdout=self._output, stderr=subprocess.PIPE, text=True, errors="replace"
                )
            except OSError as error:  # another machine's program, or a folder that must not run any
                raise SimulatorError(
                    f"{zig} which compiles the simulator's runtime, does not start: {error.strerror}",
                    hint="install ziglang for this machine; or FLYDSL_SIMULATOR_BACKEND=lockstep",
                ) from None

    def result(self) -> str:
        """Wait for the LLVM IR, once. Raises SimulatorError, and NoRoomError if it has no room in TMPDIR."""
        with self._output:
            try:
                errors = self._process.communicate(timeout=_MOST_SECONDS)[1].strip()
            except BaseException:  # a KeyboardInterrupt, mostly, or no end
                end_child(self._process)
                raise
            if os.strerror(errno.ENOSPC) in errors:
                raise NoRoomError(errors)
            if self._process.returncode:
                raise SimulatorError(f"clang cannot compile the simulator's runtime: {errors}")
            self._output.seek(0)
            return _for_any_cpu(self._output.read().decode())


def _file_with(text: str) -> IO[bytes]:
    """A temporary file with a text, open at its start. Raises NoRoomError."""
    content = temporary_file()
    try:
        content.write(text.encode())
        content.seek(0)
    except OSError as error:
        raise NoRoomError(str(error)) from error
    return content


@cache
def source(name: str) -> str:
    """The C of a part: integer types, constants, the structures of `layout`, and the files."""
    folder = Path(__file__).parent
    files = [f'#line 1 "{file}"\n{(folder / file).read_text("utf-8")}' for file in _PARTS[name]]
    return "\n".join([TYPES, _constants(), layout.declarations(), *files, ""])


TYPES = """
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;
"""


def _constants() -> str:
    lanes = range(LANES)
    numbers: dict[str, object] = {
        "LANES": LANES,
        "ACCUMULATION_ROW": ACCUMULATION_ROW,
        "EXEC": EXEC,
        "CLUSTER_STATE": CLUSTER_STATE,
        "CLUSTER_SIZES": ttmp(6),
        "RUNNING": RUNNING,
        "AT_BARRIER": AT_BARRIER,
        "AT_CLUSTER_BARRIER": AT_CLUSTER_BARRIER,
        "ENDED": ENDED,
        "SLOT_SHIFT": SLOT_SHIFT,
        "SHARED_APERTURE": f"{SHARED_APERTURE}ull",
        "PRIVATE_APERTURE": f"{PRIVATE_APERTURE}ull",
        "LINE_BYTES": LINE_BYTES,
        "SNAPSHOT_INSTRUCTIONS": SNAPSHOT_INSTRUCTIONS,
        "MOST_SNAPSHOT_INSTRUCTIONS": MOST_SNAPSHOT_INSTRUCTIONS,
        "LANE_NUMBERS": f"((u64x64){{{', '.join(map(str, lanes))}}})",
        "LANE_BEFORE": ", ".join(str(max(lane - 1, 0)) for lane in lanes),
    }
    sizes = ("WAVE_STRIDE", "TEMPLATE_BYTES", "SET_SIZE_LOG2", "PAGE_BYTES")
    reasons = ("FALL_BACK", "MODE_CHANGED", "DONE", "SLICE_OVER", "DEADLOCK", "LIMIT_REACHED", "WAITING")
    numbers |= {name: getattr(layout, name) for name in (*sizes, *reasons, "LOADS", "STORES")}
    numbers |= {f"SPACE_{space.upper()}": number for number, space in enumerate(layout.SPACES)}
    numbers |= {f"TENSOR_{name.upper()}": f"{first}, {bits}" for name, (first, bits) in tensor.FIELDS.items()}
    numbers |= {f"DOUBT_{doubt}": number for number, doubt in enumerate(layout.DOUBTS)}
    numbers["TENSOR_FIRST_INDEX"] = tensor.FIELDS["indices"].first // 32
    numbers |= {"MOST_TENSOR_ITERATIONS": tensor.MOST_ITERATIONS, "MOST_TENSOR_ROWS": tensor.MOST_ROWS}
    return "\n".join(f"#define {name} {value}" for name, value in numbers.items())


def _for_any_cpu(llvm_ir: str) -> str:
    """The IR without the CPU that clang took by default: `host` knows the right one."""
    without_target = _TARGET.sub("", llvm_ir)
    return _ATTRIBUTES.sub(lambda group: _CPU_ATTRIBUTE.sub("", group[0]), without_target)
