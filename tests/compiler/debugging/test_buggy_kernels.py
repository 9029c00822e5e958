"""Each of the kernels with a bug: one call of the guide's leads to the line, or to the elements that tell the line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import flydsl
from flydsl.simulator import checking, limited
from tests.compiler.debugging import buggy_kernels as bugs

pytestmark = pytest.mark.slow


def compared(name: str) -> str:
    return failing(
        lambda *args: flydsl.compare_reference(bugs.LAUNCHERS[name], bugs.REFERENCES[name], *args), bugs.ARGUMENTS[name]
    )


def checked(*checks: str) -> Callable[[str], str]:
    def launch(name: str) -> str:
        with checking(*checks) as found, limited(instructions=20_000):
            text = failing(bugs.LAUNCHERS[name], bugs.ARGUMENTS[name])
        return text or str(found)

    return launch


def plain(name: str) -> str:
    return failing(bugs.LAUNCHERS[name], bugs.ARGUMENTS[name])


def interpreted(name: str) -> str:
    with flydsl.interpreting():
        return plain(name)


def failing(launch: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]]) -> str:
    try:
        launch(*arguments())
    except (RuntimeError, AssertionError) as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Found:
    """The call that finds a bug, and what it says. names_line: the text has the line of the bug."""

    by: Callable[[str], str]
    says: str
    names_line: bool = True


FOUND = {
    "wrong_swizzle": Found(compared, r"made of a\[4, 4\] .* the reference, of a\[4, 0\]"),
    "last_k_left_out": Found(compared, r"made of a\[0, :23\] .* the reference, of a\[0, :\]", False),
    "accumulator_kept": Found(compared, r"made of a\[:2, :\] .* the reference, of a\[1, :\]", False),
    "missing_mask": Found(checked(), "index 12 of mode 1, which has 12 elements"),
    "transposed_fragment": Found(compared, r"made of a\[1, 0\] .* the reference, of a\[0, 1\]"),
    "wrong_scale": Found(compared, r"made of scales\[0\] .* the reference, of scales\[1\]"),
    "wrong_stride": Found(compared, r"made of a\[0, 8\] .* the reference, of a\[1, 0\]"),
    "short_reduction": Found(compared, r"made of a\[:32\] .* the reference, of a\[:\]", False),
    "thread_for_lane": Found(compared, r"made of a\[2\] .* the reference, of a\[4\]"),
    "short_grid": Found(compared, "no thread has written it\n(.|\n)*do the grid and the block cover", False),
    "converted_too_early": Found(compared, r"both are made of a\[0\]"),
    "int8_overflow": Found(checked("overflow"), "in Int8: it wraps around"),
    "f16_overflow": Found(checked("nan"), "made inf of 64704, 3600"),
    "masked_row": Found(checked("nan"), "made nan of -inf, -inf"),
    "missing_barrier": Found(checked(), "with no barrier in between"),
    "early_overwrite": Found(checked(), "which wave 1, lane 63 read with no barrier in between"),
    "unwritten_shared": Found(checked(), "which no thread of the workgroup has written"),
    "lost_update": Found(checked(), "update with an atomic"),
    "same_tile": Found(checked(), "workgroups run in any order"),
    "past_the_end": Found(plain, "outside of a .float32.50., 200 bytes.: element 50"),
    "barrier_in_a_branch": Found(checked(), r"waves \[0\] wait, and waves \[1\] ended without coming there"),
    "barrier_of_some_lanes": Found(checked(), "without 24 of its 64 lanes, the first of them thread .40, 0, 0."),
    "one_arrival_too_few": Found(checked(), r"4 of 5 workgroups have written it, not \(0, 0, 0\)", False),
    "never_counts": Found(interpreted, "loops do not end"),
}


def lines() -> dict[str, int]:
    """The line of each kernel's bug."""
    found, kernel = {}, ""
    for number, line in enumerate(Path(bugs.__file__).read_text().splitlines(), 1):
        name = re.match(r"def (\w+?)(_kernel)?\(", line)
        kernel = name[1] if name else kernel
        if kernel and "# bug" in line:
            found[kernel] = number
    return found


@pytest.mark.filterwarnings("ignore:this view of shared memory")
@pytest.mark.parametrize("name", FOUND)
def test_a_bug_is_found(name: str) -> None:
    found = FOUND[name]
    text = found.by(name)
    assert re.search(found.says, text), text
    assert not found.names_line or f"buggy_kernels.py:{lines()[name]}" in text


def test_each_kernel_is_looked_at() -> None:
    assert set(FOUND) == set(bugs.LAUNCHERS) == set(lines())
