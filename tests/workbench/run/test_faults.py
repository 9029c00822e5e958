"""The stepper of the error of a launch."""

from __future__ import annotations

import pytest
import torch

from flydsl.simulator import MemoryFault
from tests.simulator.stepping.test_faults import beyond
from workbench import explore


def test_the_stepper_stands_before_what_raised_the_error() -> None:
    with pytest.raises(MemoryFault) as caught:
        beyond(torch.zeros(130), torch.zeros(192), 150)
    stepper = explore(caught.value)
    assert stepper.recording is caught.value.simulation
    assert stepper.recording.now.instruction.listed.text == caught.value.instruction
