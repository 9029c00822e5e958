"""The page of `workbench run --report report.html`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from flydsl import gpu
from flydsl.errors import ArgumentError
from kernels.vector_add import vector_add
from workbench.program_report import write_program_report


def test_a_page_has_every_kernel_and_says_what_is_not_timed(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with gpu.pose("mi300x"):
        x = torch.arange(64.0, device="cuda")
        vector_add(x, x, torch.zeros_like(x))
        gpu.watch()
        for _ in range(3):
            vector_add(x, x, torch.zeros_like(x))
        write_program_report(page, "<b>&.py")
        (kernel,) = gpu.summary().kernels
    text = page.read_text("utf-8")
    assert "&lt;b&gt;&amp;.py on AMD Instinct MI300X" in text
    assert "<b>" not in text
    assert "1 launch is not timed: the program did not measure time yet." in text
    for part in (kernel.kernel, kernel.bound, kernel.estimate.error, f"{kernel.total_us:.4g} us", ">3</td>", "100%"):
        assert part in text
    assert "default-src 'none'" in text


def test_a_page_needs_a_gpu_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no GPU is posed"):
        write_program_report(tmp_path / "report.html", "a.py")
    with gpu.pose("mi300x"):
        with pytest.raises(ArgumentError, match="there is no folder"):
            write_program_report(tmp_path / "nowhere" / "report.html", "a.py")
        write_program_report(tmp_path / "report.html", "a.py")
    assert "No launch is timed." in (tmp_path / "report.html").read_text("utf-8")
