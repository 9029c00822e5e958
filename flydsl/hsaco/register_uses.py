"""The registers that an instruction reads and writes, from its text, for every architecture that LLVM prints.

Assembly names registers in the operands, results first. This module adds what the text does not say: which instructions
have no result, or two, and which also read what they write (they accumulate, or write a part of a register).

Source: the operand tables of the CDNA 3, RDNA 4 ISA documents; compared with the simulator's table in the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from flydsl.hsaco.operands import split_encoding, split_operands, split_words

_FILES = {"s": 0, "v": 128, "a": 128 + 1024}  # where each file's bits begin in a set
_SIZES = {"s": 128, "v": 1024, "a": 512}
_VCC = 106
_WITHOUT_MASK = 3  # operands of a selection that does not name its mask

VECTOR_REGISTERS = -1 << _FILES["v"]
"""The bits of a register set for the registers that have a value per lane."""

_REGISTER = re.compile(r"(?<![\w.])([sva])(?:(\d+)(\.[lh])?|\[(\d+)(?::(\d+))?\])(?!\w)")
_SPECIAL = re.compile(r"(?<![\w.])vcc(_lo|_hi)?(?!\w)")
# gfx1250 names registers above 255 in a comment after the ones that stand in the encoding.
_HIGH_REGISTER = re.compile(r"\S+ /\*(.*?)\*/")

_NO_RESULT = re.compile(
    r"s_(?:cmpk?_|bitcmp|c?branch|waitcnt|wait_|wait_event|barrier|endpgm|nop$|setreg|sendmsg(?:halt)?$|set_?pc|set_gpr_idx"
    r"|sleep|setprio|delay_alu|clause|set_vgpr_msb|icache|dcache|trap|sethalt|code_end|prefetch|round_mode|denorm_mode"
    r"|inst_prefetch|ttracedata|wakeup|decperf|incperf|store|scratch_store|buffer_store|setvskip|rfe|monitor|alloc_vgpr"
    r"|scheduling|version|setkill)"
    r"|v_nop|(?:buffer|tbuffer|global|flat|scratch|image|cluster|tensor)_\w*store|ds_(?:write|store|nop|gws)"
    r"|exp$|export|buffer_(?:inv|wb|gl)|global_(?:inv|wb|prefetch)|flat_prefetch|tensor_"
    r"|(?:global|scratch)_load_lds|\w+_async_to_lds|ds_\w*barrier_arrive"
)
_ATOMIC = re.compile(r"(?:buffer|global|flat|scratch|image|cluster)_atomic")
_LDS_ATOMIC = re.compile(
    r"ds_(?:(?:cond_)?(?:add|sub|rsub|inc|dec|min|max|min_num|max_num|and|or|xor|mskor|wrxchg|storexchg|cmpst|cmpstore|pk_add)_)"
)
_TWO_RESULTS = re.compile(r"v_(?:\w+_co_(?:ci_)?u32|div_scale|mad_(?:co_)?(?:u64_u32|i64_i32)|swap|permlane\d+_swap)")
_READS_RESULT = re.compile(
    r"v_(?:\w*fmac|mac_|pk_fmac|dot\d+c|writelane|movreld|smfmac|swmmac|\w*_mix(?:lo|hi)|swap|permlane\d+_swap"
    r"|cvt_pk_(?:fp8|bf8)_f32|cvt_pkaccum|cvt_sr_(?:fp8|bf8))"
    r"|s_(?:cmovk?|addk|mulk|bitset[01]|fmac)_|(?:buffer|tbuffer|global|flat|scratch|ds)_\w*d16"
)
_RETURNS = re.compile(r"(?:^|\s)(?:sc0|glc|th:TH_ATOMIC\w*RETURN)(?:\s|$)")


class RegisterSet(int):
    """A set of registers, a bit for each: 128 scalar ones (VCC is 106 and 107), 1024 vector ones, 512 accumulators."""

    @staticmethod
    def of(file: str, first: int, count: int = 1) -> RegisterSet:
        """Consecutive registers of file "s", "v" or "a"."""
        return RegisterSet(((1 << count) - 1) << (_FILES[file] + first))

    def count(self, file: str) -> int:
        """The number of registers of one file."""
        return ((self >> _FILES[file]) & ((1 << _SIZES[file]) - 1)).bit_count()

    def registers(self) -> Iterator[tuple[str, int]]:
        """The file and the number of each, in order."""
        for file, start in _FILES.items():
            bits = (self >> start) & ((1 << _SIZES[file]) - 1)
            yield from ((file, i) for i in range(bits.bit_length()) if bits >> i & 1)

    def names(self) -> list[str]:
        """Their names, in order.

        >>> registers_of("v[2:3], s0, vcc").names()
        ['s0', 'vcc_lo', 'vcc_hi', 'v2', 'v3']
        """
        return [_SPECIAL_NAMES.get(register, f"{register[0]}{register[1]}") for register in self.registers()]


_SPECIAL_NAMES = {("s", _VCC): "vcc_lo", ("s", _VCC + 1): "vcc_hi"}


def registers_of(text: str) -> RegisterSet:
    """All registers that a text names."""
    found = 0
    for file, single, _half, first, last in _REGISTER.findall(text):
        low = int(single or first)
        found |= RegisterSet.of(file, low, int(last or low) - low + 1)
    for half in _SPECIAL.findall(text):
        found |= RegisterSet.of("s", _VCC + (half == "_hi"), 1 if half else 2)
    return RegisterSet(found)


def full_names(text: str) -> str:
    """An instruction with the registers that it means, instead of those that stand in the encoding.

    >>> full_names("v_mov_b32_e32 v2 /*v258*/, v1")
    'v_mov_b32_e32 v258, v1'
    """
    return _HIGH_REGISTER.sub(r"\1", text) if "/*" in text else text


class Uses(NamedTuple):
    """The registers that an instruction reads and writes."""

    reads: RegisterSet
    writes: RegisterSet


def uses(text: str) -> Uses:
    """The registers of an instruction, one of two that issue together included.

    >>> read, written = uses("v_fmac_f32_e32 v0, v1, s2")
    >>> read.names(), written.names()
    (['s2', 'v0', 'v1'], ['v0'])
    """
    parts = [_single(part) for part in full_names(text).split("::")]
    reads, writes = 0, 0
    for part in parts:
        reads |= part.reads
        writes |= part.writes
    return Uses(RegisterSet(reads), RegisterSet(writes))


def _single(text: str) -> Uses:
    name, _, rest = text.strip().partition(" ")
    operands = split_operands(rest)
    if operands:  # what follows the last operand are modifiers
        last, *modifiers = split_words(operands[-1])
        operands[-1] = last
    else:
        modifiers = []
    results = result_count(name, len(operands), modifiers)
    writes = registers_of(",".join(operands[:results]))
    reads = registers_of(",".join([*operands[results:], *modifiers]))
    if reads_result(name, ",".join(operands[:results]), modifiers):
        reads = RegisterSet(reads | writes)
    if base_name(name).startswith(("v_div_fmas", "s_cbranch_vcc")):
        reads = RegisterSet(reads | registers_of("vcc"))
    elif name == "v_dual_cndmask_b32" and len(operands) == _WITHOUT_MASK:
        reads = RegisterSet(reads | registers_of("vcc_lo"))
    return Uses(reads, writes)


def base_name(mnemonic: str) -> str:
    """A mnemonic without its encoding.

    >>> base_name("v_add_f32_e32")
    'v_add_f32'
    """
    return split_encoding(mnemonic)[0]


def result_count(mnemonic: str, operand_count: int, modifiers: list[str]) -> int:
    """The number of leading operands that are results."""
    name = base_name(mnemonic)
    if not operand_count or _NO_RESULT.match(name):
        return 0
    if name.startswith("v_cmpx"):  # newer architectures write EXEC, which is not named
        return operand_count - 2
    if _ATOMIC.match(name):
        return int(_RETURNS.search(" ".join(modifiers)) is not None)
    if _LDS_ATOMIC.match(name) and "_rtn" not in name:
        return 0
    if name.startswith("buffer_load") and "lds" in modifiers:
        return 0
    return 2 if _TWO_RESULTS.match(name) else 1


def reads_result(mnemonic: str, results: str, modifiers: list[str]) -> bool:
    """True if the instruction also reads its result registers."""
    name, flags = base_name(mnemonic), " ".join(modifiers)
    if _READS_RESULT.match(name) or (name.startswith("buffer_atomic") and results):
        return True
    if re.search(r"\.[lh]\b", results) or "UNUSED_PRESERVE" in flags:
        return True
    if "_dpp" in mnemonic and not mnemonic.endswith("dpp8"):
        return "bound_ctrl:" not in flags or re.search(r"(?:row|bank)_mask:0x[0-9a-e]\b", flags) is not None
    return False
