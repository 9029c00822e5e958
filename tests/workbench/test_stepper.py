"""The stepper view: where a simulation stands and what changed, and what its controls do."""

from __future__ import annotations

import pytest

import workbench
from tests.workbench.test_explorer import control, text
from workbench.stepper import register_text, simulation_html


@pytest.fixture
def simulation(launcher, tensors):
    return launcher.simulate(*tensors, 128)


def test_where_it_stands_and_what_changed(simulation, read):
    assert "changed no register" in read(simulation_html(simulation)).text
    simulation.run(until="isa:" + str(next(i for i in simulation.listing if "v_add_f32" in i.listed.text).listed.line))
    simulation.step()
    (name,) = simulation.changed[0]
    page = read(simulation_html(simulation)).text
    assert f"{name}" + "40000000 " * 8 in page.replace(f"{name}\n", name)  # 1 + 1 in every lane
    assert register_text(simulation.wave(0), "exec") == "0xffffffffffffffff"


def test_the_controls(simulation, tensors, read):
    stepper = workbench.explore(simulation)
    control(stepper, "Step").click()
    assert simulation.wave(0).executed == 1
    control(stepper, "Line").value = "8"
    control(stepper, "Run to line").click()
    assert simulation.instruction.location.line == 8
    assert "C[i] = A[i] + B[i] * scale" in text(stepper, read)
    control(stepper, "Line").value = "9000"
    control(stepper, "Run to line").click()
    assert "no instruction belongs to line 9000" in text(stepper, read)
    control(stepper, "Run to the end").click()
    assert simulation.done
    assert tensors[2].eq(2).all()
    assert control(stepper, "Step").disabled
    assert "everything has run" in read(stepper.static_html()).text


def test_it_shows_itself(notebook, read):
    (shown,) = notebook.run("display(launch.simulate(A, B, C, 128))").shown
    assert "workgroup (0, 0, 0)" in read(shown["text/html"]).text
    (shown,) = notebook.run("display(launch.simulate(A, B, C, 128).explore())").shown
    assert "application/vnd.jupyter.widget-view+json" in shown
