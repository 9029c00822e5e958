"""Each example of what is refused assembles on both GPUs, is refused by name, and stands in COVERAGE.md."""

from __future__ import annotations

import pytest

from flydsl.hsaco.assembler import assemble
from flydsl.simulator.isa.coverage import PAGE
from tests.simulator.isa.refused import EXAMPLES, GPUS, problems, table


@pytest.mark.parametrize("gpu", GPUS)
def test_each_is_an_instruction_of_the_gpu_that_is_refused_by_name(gpu: str) -> None:
    assert assemble("\n".join(["L:", *EXAMPLES.values(), ""]), gpu)
    for what, problem in problems(gpu).items():
        mnemonic = EXAMPLES[what].split()[0].removesuffix("_dpp").removesuffix("_e64")
        assert mnemonic in problem


def test_the_list_of_what_is_executed_has_them() -> None:
    assert table() in PAGE.read_text()
