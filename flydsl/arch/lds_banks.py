"""LDS bank conflicts: the lanes of a wave that compete for banks, and the passes an access takes.

bank = (byte address / 4) % banks. Lanes that read the same dword share it (broadcast); lanes that want different dwords
of one bank take turns. A wide access is served in phases: only lanes of the same phase compete.

Source of the phases: measurements on hardware in nod-ai/amd-shark-ai, docs/empirical-lds/lds_summary.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flydsl.arch.base import Arch, Phases
from flydsl.errors import ArchError

_DWORD_BYTES = 4


@dataclass(frozen=True)
class PhaseConflicts:
    """One phase of an access: its lanes, and for each bank that they touch the dwords they want from it."""

    lanes: tuple[int, ...]
    dwords_by_bank: dict[int, tuple[int, ...]]

    @property
    def ways(self) -> int:
        """Passes that this phase takes: 1 without a conflict."""
        return max((len(dwords) for dwords in self.dwords_by_bank.values()), default=0)


def lane_groups(wave_size: int, lanes_per_group: int) -> Phases:
    """The lanes of a wave in order, in groups of the same size: the plain case of phases."""
    return tuple(tuple(range(first, first + lanes_per_group)) for first in range(0, wave_size, lanes_per_group))


def phases(arch: Arch, op: str, wave_size: int | None = None) -> Phases:
    """The phases of an LDS access; `op` is "read_b32", "read_b64", "read_b128" or "write_b128".

    wave_size: lanes of the wave, by default as many as waves of the GPU have. Where these have 32, a wave of 64 is
    served like two of them. Raises ArchError where the phases were not measured: a guess would look like
    a fact.
    """
    if arch.lds_banks is None:
        raise ArchError(f"the LDS banks of {arch.name} are not known")
    if op not in arch.lds_phases:
        known = ", ".join(sorted(arch.lds_phases))
        raise ArchError(f"how {arch.name} serves an LDS {op} is not known", hint=f"known on {arch.name}: {known}")
    groups = arch.lds_phases[op]
    lanes = sum(map(len, groups))
    starts = range(0, wave_size or lanes, lanes)
    return tuple(tuple(first + lane for lane in group) for first in starts for group in groups)


def conflict_ways(arch: Arch, op: str, byte_addresses: Sequence[int | None]) -> tuple[PhaseConflicts, ...]:
    """The bank conflicts of one LDS access of a wave, phase by phase.

    byte_addresses: one LDS address per lane, None for a lane that is switched off. Raises ArchError where the phases
    are not known or the addresses are not one for each lane, aligned to a dword.
    """
    groups = phases(arch, op, len(byte_addresses) if len(byte_addresses) in arch.vgpr_files else None)
    lane_count = sum(len(lanes) for lanes in groups)
    if len(byte_addresses) != lane_count:
        raise ArchError(f"an LDS {op} on {arch.name} has {lane_count} lanes, not {len(byte_addresses)} addresses")
    for lane, address in enumerate(byte_addresses):
        if address is not None and (address < 0 or address % _DWORD_BYTES):
            raise ArchError(f"lane {lane} has LDS address {address}, which is not a multiple of {_DWORD_BYTES} bytes")
    dwords = _access_dwords(op)
    banks = arch.lds_banks or 0  # `phases` has refused None
    return tuple(_phase(lanes, byte_addresses, dwords, banks) for lanes in groups)


def _phase(lanes: tuple[int, ...], addresses: Sequence[int | None], dwords: int, banks: int) -> PhaseConflicts:
    wanted: dict[int, set[int]] = {}
    for lane in lanes:
        address = addresses[lane]
        if address is None:
            continue
        for dword in range(address // _DWORD_BYTES, address // _DWORD_BYTES + dwords):
            wanted.setdefault(dword % banks, set()).add(dword)
    return PhaseConflicts(lanes, {bank: tuple(sorted(wanted[bank])) for bank in sorted(wanted)})


def _access_dwords(op: str) -> int:
    match = re.fullmatch(r"(?:read|write)_b(\d+)", op)
    assert match, f"phase tables are keyed by read_b… and write_b…, not {op}"
    return int(match[1]) // 32
