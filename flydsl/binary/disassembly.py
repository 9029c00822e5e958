"""The listing of a code object that came without one, by the llvm-objdump of ROCm or of the system.

LLVM's libraries that Python packages bring have no disassembler for AMD GPUs. What a disassembler writes is assembled
again and compared with the code object, byte for byte, so an old one cannot give other code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from flydsl import env
from flydsl.errors import CompileError
from flydsl.hsaco import Hsaco
from flydsl.hsaco.listing import ListingError
from flydsl.hsaco.same_code import processor
from flydsl.system.temporary_files import temporary_folder
from flydsl.system.ziglang import run_tool

_SECONDS = 60
_DEBIANS = "/usr/bin"
_LINE = re.compile(r"^\t(?P<text>[a-z]\S.*?)\s*(?://\s*(?P<address>[0-9A-F]+):.*)?$")
_BRANCH = re.compile(r"^(?P<branch>s_(?:c?branch\w*|call_b64 \S+,)) (?P<offset>\d+)$")
_HINT = (
    "put its assembly beside it (the same name with .s; compilers write it with -S), or install LLVM's llvm-objdump "
    "with the AMDGPU target: it comes with ROCm (/opt/rocm/llvm/bin) and with LLVM 19 or later"
)


def disassembled(data: bytes, contents: Hsaco) -> str:
    """Assembly text of a code object. Raises CompileError if no llvm-objdump knows its processor.

    Addresses of constants are numbers in it, so that a kernel that reads constants of its module is refused.
    """
    gpu = processor(contents.target)
    refused: list[str] = []
    for tool in find_objdumps():
        output = _run(tool, data, gpu.partition(":")[0])
        if output is not None:
            return _listing(output, contents, gpu)
        refused.append(tool)
    found = f"; {', '.join(refused)} does not know it" if refused else ""
    raise CompileError(f"there is no listing, and no disassembler for {gpu}{found}", hint=_HINT)


def find_objdumps() -> Iterator[str]:
    """The llvm-objdumps of ROCm and of the system, best first."""
    rocm_path = env.text("ROCM_PATH") or "/opt/rocm"
    in_rocm = shutil.which("llvm-objdump", path=os.path.join(rocm_path, "llvm", "bin"))
    names = sorted(Path(_DEBIANS).glob("llvm-objdump-*"), key=lambda file: -_version(file.name))
    candidates = [in_rocm, *map(str, names), shutil.which("llvm-objdump")]
    yield from dict.fromkeys(tool for tool in candidates if tool)


def _version(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _run(tool: str, data: bytes, gpu: str) -> str | None:
    """The disassembly, or None if this tool does not know the code."""
    with temporary_folder() as directory:
        file = directory / "code.hsaco"
        file.write_bytes(data)
        command = [tool, "-d", f"--mcpu={gpu}", "--section=.text", str(file)]
        try:
            done = run_tool(command, _SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return None
    unknown = done.returncode or "not a recognized processor" in done.stderr or "<unknown>" in done.stdout
    return None if unknown else done.stdout


def _listing(output: str, contents: Hsaco, gpu: str) -> str:
    """A listing that assembles, of llvm-objdump's output: labels where branches go, and kernels' symbols."""
    code = _instructions(output, contents.text_address)
    ends = [address for address, _ in code[1:]] + [len(contents.text)]
    following = {address: end for (address, _), end in zip(code, ends, strict=True)}
    targets = {
        following[address] + 4 * _signed(found["offset"]) for address, text in code if (found := _BRANCH.match(text))
    }
    names = {info.code_range[0]: info.symbol.removesuffix(".kd") for info in contents.kernels.values()}
    lines = [f'\t.amdgcn_target "amdgcn-amd-amdhsa--{gpu}"', "\t.text", "\t.p2align 8"]
    for address, text in code:
        if address in names:
            lines += [f"\t.globl {names[address]}", f"\t.type {names[address]},@function", f"{names[address]}:"]
        if address in targets:
            lines.append(f".L{address:x}:")
        lines.append(f"\t{_with_label(text, following[address], following)}")
    return "\n".join([*lines, ""])


def _instructions(output: str, start: int) -> list[tuple[int, str]]:
    """Offsets into the code with the instruction's text there."""
    found = [match for line in output.splitlines() if (match := _LINE.match(line)) and match["address"]]
    code = [(int(match["address"], 16) - start, match["text"]) for match in found]
    if relative := next((text for _, text in code if text.startswith(("s_getpc_b64", "s_get_pc_i64"))), None):
        raise ListingError(
            f"the code computes addresses from its own ({relative}), which a disassembly does not tell", hint=_HINT
        )
    return code


def _with_label(text: str, following: int, known: dict[int, int]) -> str:
    found = _BRANCH.match(text)
    if found is None:
        return text
    target = following + 4 * _signed(found["offset"])
    if target not in known:
        raise ListingError(f"a branch ends at {target:#x}, where no instruction begins: {text}", hint=_HINT)
    return f"{found['branch']} .L{target:x}"


def _signed(offset: str) -> int:
    """A branch's distance in dwords, 16 bits."""
    return (int(offset) ^ 0x8000) - 0x8000
