"""The lock-step machine with the checks of `checks`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.errors import LdsRace, UninitializedLds
from flydsl.simulator.lds_history import Conflict, LdsHistory
from flydsl.simulator.lockstep import Step
from flydsl.simulator.numpy_memory import Request, Resolved
from flydsl.simulator.numpy_values import Array
from flydsl.simulator.threefold import COPIES, ThreefoldMachine
from flydsl.simulator.waves import AT_BARRIER, Dim3

_ALIGNMENT_ELSEWHERE = 4
_ALIGNMENT_IN_LDS = 16


class CheckedMachine(ThreefoldMachine):
    """Knows the history of the LDS and looks at alignment; registers are what the class above looks at."""

    def __init__(
        self,
        dispatch: Dispatch,
        steps: Sequence[Step],
        workgroup_ids: Sequence[Dim3],
        instruction_limit: int,
        checks: frozenset[str],
    ) -> None:
        copies = COPIES if "uninitialized" in checks else 1
        super().__init__(dispatch, steps, workgroup_ids, instruction_limit, copies)
        self._checks = checks
        self._lds = LdsHistory(self.waves.lds_stride * len(workgroup_ids), len(workgroup_ids))
        self._access_kind = "read"

    def release_barriers(self) -> bool:
        first = slice(self._originals)
        arrived = np.unique(self.waves.workgroup[first][self.waves.status[first] == AT_BARRIER])
        released = super().release_barriers()
        self._lds.pass_barrier(arrived)
        return released

    def _check(self, space: str, request: Request, *, is_atomic: bool) -> None:
        super()._check(space, request, is_atomic=is_atomic)
        self._access_kind = "atomic" if is_atomic else "write" if request.is_write else "read"
        if "alignment" in self._checks:
            limit = _ALIGNMENT_IN_LDS if space == "lds" else _ALIGNMENT_ELSEWHERE
            self._check_alignment(space, request, min(1 << (request.size - 1).bit_length(), limit))

    def _resolve_local(self, space: str, request: Request) -> Resolved:
        resolved = super()._resolve_local(space, request)
        if space == "lds":
            self._check_lds(request, resolved.offsets)
        return resolved

    def _check_lds(self, request: Request, offsets: Array) -> None:
        waves, _ = self._wave_and_lane(request)
        mine = np.flatnonzero(waves < self._originals)
        waves, places = waves[mine], offsets[mine, None] + np.arange(request.size)
        kind = self._access_kind
        # An exchange is how a program may write without knowing whether another one did.
        if "uninitialized" in self._checks and kind != "write" and "wrxchg" not in self.instruction.mnemonic:
            bad = self._lds.unwritten(places)
            if bad is not None:
                self._unwritten(request, int(mine[bad[0]]), bad[1])
        if "races" in self._checks:
            for wave in np.unique(waves):
                chosen = np.flatnonzero(waves == wave)
                workgroup = int(self.waves.workgroup[wave])
                conflict = self._lds.access(kind, places[chosen], int(wave), workgroup, self._pc)
                if conflict:
                    self._race(request, int(mine[chosen[conflict.position]]), conflict)
        if kind != "read":
            self._lds.mark_written(places)

    def _unwritten(self, request: Request, which: int, byte: int) -> None:
        """byte: the first one of the access that nothing wrote."""
        address = int(request.address[which])
        nobody = f"{address + byte:#x}, which no thread of the workgroup has written"
        problem = f"at LDS address {nobody}" if byte == 0 else f"at LDS address {address:#x}, of them {nobody}"
        hint = "write it first, with a barrier in between where another wave reads it"
        self._fault("lds", request, which, None, problem, UninitializedLds, hint)

    def _race(self, request: Request, which: int, conflict: Conflict) -> None:
        other = self.program.instructions[conflict.pc]
        verb = {"read": "read", "write": "wrote", "atomic": "atomically updated"}[conflict.kind]
        place = f", {other.location}" if other.location else ""
        wave = conflict.wave % self.waves.waves_per_workgroup
        problem = (
            f"at LDS address {int(request.address[which]):#x}, which wave {wave} {verb} with no barrier in between: "
            f"{other.listed.text} (ISA line {other.listed.line}{place})"
        )
        self._fault("lds", request, which, None, problem, LdsRace, "put a barrier between the two")
