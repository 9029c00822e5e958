"""The traces of launches: by the magic, by functions, in the exported page."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import workbench
from flydsl.errors import ArgumentError
from flydsl.simulator import checking, tracing
from tests.workbench.test_page import Reader
from workbench.display import VIEWS

RUN = "launch(A, B, C, 128)"


def test_the_magic_shows_the_trace(notebook, read) -> None:
    outcome = notebook.run(f"%%flykernel --show trace\n{RUN}\nresult = torch.equal(C, A + B)")
    assert outcome.error is None
    assert notebook.shell.user_ns["result"] is True  # timed launches run all the same
    (shown,) = outcome.shown
    for text in (read(shown["text/html"]).text, shown["text/plain"]):
        assert "estimated by the timing model" in text
        assert "What limits the kernel" in text
        assert "C[i] = A[i] + B[i] * scale" in text
    assert "<img " in shown["text/html"]


def test_the_live_magic_has_a_tab(notebook) -> None:
    outcome = notebook.run(f"%%flykernel --live --show trace\n{RUN}")
    assert outcome.error is None
    assert "estimated by the timing model" in outcome.shown[0]["text/plain"]


def test_without_a_trace_it_says_why(notebook, read) -> None:
    outcome = notebook.run(f"%%flykernel --show trace --arch gfx950\n{RUN}")
    assert outcome.error is None
    assert "estimated" in read(outcome.shown[0]["text/html"]).text  # of the launch, which is the same
    with checking():
        outcome = notebook.run(f"%%flykernel --show trace\n{RUN}")
    assert "Not timed:" in read(outcome.shown[0]["text/html"]).text
    assert "Not timed:" in outcome.shown[0]["text/plain"]


def test_a_target_without_figures_runs_all_the_same(notebook, monkeypatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1250")
    outcome = notebook.run(f"%%flykernel --show trace\n{RUN}\nresult = torch.equal(C, A + B)")
    assert outcome.error is None
    assert notebook.shell.user_ns["result"] is True
    assert "Not timed: the project has no figures of the time that gfx1250 needs." in outcome.shown[0]["text/plain"]


def test_a_launch_is_traced_and_compared_and_exported(launcher, tensors, tmp_path: Path) -> None:
    launch = workbench.trace(launcher, *tensors, 128)
    assert torch.equal(tensors[2], tensors[0] + tensors[1])
    assert launch.trace.kernel in repr(workbench.timeline(launch))
    for shown in (*(show(launch) for show in VIEWS[type(launch)]), workbench.explore(launch).static_html()):
        assert "What limits the kernel" in shown
        assert "Not counted" not in shown
    assert "cycles of the launch" in repr(workbench.timeline(launch, launch.trace))
    found = Reader(workbench.export(launch, tmp_path / "page.html").read_text("utf-8"))
    assert "data-timeline" in {name for _, attrs in found.tags for name in attrs}
    assert "estimated by the timing model" in found.text
    with pytest.raises(ArgumentError, match="cannot be launched"):
        workbench.trace(3)


def test_a_session_shows_its_launches(launcher, tensors, read) -> None:
    with tracing() as session:
        assert read(VIEWS[type(session)][0](session)).text.strip() == "No launch was timed."
        with pytest.raises(ArgumentError, match="no launch was timed"):
            workbench.explore(session)
        launcher(*tensors, 128)
        assert "What limits" in repr(workbench.timeline(session))
        launcher(*tensors, 64)
    for as_html, as_text in (VIEWS[type(session)], VIEWS[type(session.launches[0])]):
        value = session if (as_html, as_text) == VIEWS[type(session)] else session.launches[0]
        assert "estimated by the timing model" in read(as_html(value)).text
        assert "estimated by the timing model" in as_text(value)
    both = workbench.explore(session)
    assert len(both.children[0].options) == 2
    assert read(both.static_html()).text.count("What limits") == 2
    with pytest.raises(ArgumentError, match="of 2 launches"):
        workbench.timeline(session)


HIP = """\
__global__ void add(const float *a, const float *b, float *c) {
  int i = blockIdx.x * 64 + threadIdx.x;
  c[i] = a[i] + b[i];
}"""


def test_kernels_of_other_compilers_are_timed_too(notebook, read) -> None:
    call = '--call "module.add(A, B, C, grid=2, block=64)"'
    outcome = notebook.run(f"%%flykernel --language hip --show trace {call}\n{HIP}")
    assert outcome.error is None, outcome.text
    assert notebook.run("assert torch.equal(C, A + B)").error is None
    for text in (read(outcome.shown[0]["text/html"]).text, outcome.shown[0]["text/plain"]):
        assert "_Z3addPKfS0_Pf on gfx942" in text
        assert "What limits the kernel" in text
