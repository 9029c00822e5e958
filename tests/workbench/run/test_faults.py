"""The stepper of the error of a launch."""

from __future__ import annotations

import pytest
import torch

from flydsl.simulator import MemoryFault, Recording
from tests.simulator.stepping.test_faults import beyond
from workbench import explore
from workbench.run.stepper import AS_WRITTEN, State, simulation_html


def test_the_stepper_stands_before_what_raised_the_error() -> None:
    with pytest.raises(MemoryFault) as caught:
        beyond(torch.zeros(130), torch.zeros(192), 150)
    stepper = explore(caught.value)
    assert stepper.recording is caught.value.simulation
    assert stepper.recording.now.instruction.listed.text == caught.value.instruction


def test_values_are_shown_in_the_type_of_what_wrote_them() -> None:
    recording = Recording(beyond.simulate(torch.arange(192.0) + 0.5, torch.zeros(192), 192))
    while not recording.now.instruction.mnemonic.startswith("v_add_f32"):
        recording.step()
    recording.step()
    shown = simulation_html(recording.now, State(form=AS_WRITTEN))
    assert "f32" in shown
    assert "1.5          2.5" in shown
    assert "1.5          2.5" in simulation_html(recording.now, State(form=AS_WRITTEN, registers="VGPR"))
    assert "3fc00000" in simulation_html(recording.now)
