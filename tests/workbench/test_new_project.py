"""`workbench new`: a project whose tests pass."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flydsl.errors import ArgumentError
from tests.processes import run_python
from workbench import new_project
from workbench.__main__ import main
from workbench.new_project import TEMPLATE, write_project

ROOT = Path(__file__).parents[2]


def test_names_of_projects(tmp_path: Path) -> None:
    written = write_project(tmp_path / "fast-gemms")
    assert tmp_path / "fast-gemms" / "fast_gemms" / "row_sums.py" in written
    assert not any("my_kernels" in file.read_text() or "my-kernels" in file.read_text() for file in written)
    with pytest.raises(ArgumentError, match="is there already, and not empty"):
        write_project(tmp_path / "fast-gemms")
    for name in ("2gemms", "Gemms", "class", "a b"):
        with pytest.raises(ArgumentError, match="a project cannot be named"):
            write_project(tmp_path / name)


def test_without_pytest_the_figures_are_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The project brings pytest, which the next step installs."""
    monkeypatch.setattr(new_project, "find_spec", lambda name: None)
    assert main(["new", str(tmp_path / "my-kernels")]) == 0
    assert "pip install -e '.[dev]' && pytest --update-figures" in capsys.readouterr().out


def commands(workflow: str) -> list[str]:
    """Of a workflow for GitHub those that run in a shell."""
    return re.findall(r"^      - run: (.*)$", workflow, re.MULTILINE)


@pytest.mark.slow
def test_its_tests_pass_and_its_workflow_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of their own, with a cache of their own; what a test environment has is not installed anew."""
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_PLUGINS", "flydsl.testing.plugin,workbench.pytest_pages")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project = tmp_path / "my-kernels"

    def run(command: list[str], cwd: Path, check: bool) -> subprocess.CompletedProcess[str]:
        assert (command[0], check) == (sys.executable, False)
        return run_python(*command[1:], cwd=cwd)

    monkeypatch.setattr(subprocess, "run", run)  # without the start of Python
    assert main(["new", str(project)]) == 0
    assert "time_us" in (project / "tests" / "test_row_sums.figures.txt").read_text()
    workflow = (project / ".github" / "workflows" / "kernels.yml").read_text()
    torch, install, test = commands(workflow)
    assert torch.startswith("pip install torch --index-url ")
    assert install == "pip install -e '.[dev]'"
    ran = run_python("-m", *shlex.split(test.replace("-n auto", "")), cwd=project)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "15 passed" in ran.stdout
    assert (project / "pages" / "index.html").is_file()
    assert (project / "report.xml").is_file()
    gitlab = (project / ".gitlab-ci.yml").read_text()
    assert all(f"    - {command}\n" in gitlab for command in (torch, install, test))


@pytest.mark.parametrize("name", [".github/workflows/kernels.yml", ".gitlab-ci.yml"])
def test_the_guide_has_its_workflows(name: str) -> None:
    guide = (ROOT / "docs" / "guide" / "testing.md").read_text()
    assert f"```yaml\n{(TEMPLATE / name).read_text()}```" in guide


@pytest.mark.slow
def test_the_cache_of_gitlab_goes_home_and_back(tmp_path: Path) -> None:
    """GitLab's folders can be written by anyone, and a cache that others can write is not used."""
    lines = (TEMPLATE / ".gitlab-ci.yml").read_text().splitlines()
    make, fetch, keep = (line.strip().removeprefix("- ") for line in lines if "~/.flydsl" in line)
    project, home = tmp_path / "builds", tmp_path / "home"
    project.mkdir(mode=0o777)
    project.chmod(0o777)
    code = "from flydsl import env; from flydsl.system.disk_cache import RecordFolder as F; "
    code += "f = F(env.cache_dir() / 'x', 1 << 20); "
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment.pop("FLYDSL_RUNTIME_CACHE_DIR", None)

    def job(python: str) -> str:
        home.mkdir()
        script = ["umask 077", make, fetch, f'{sys.executable} -c "{code}{python}"', keep]
        ran = subprocess.run(
            ["bash", "-ec", "\n".join(script)], cwd=project, env=environment, capture_output=True, text=True, check=True
        )
        shutil.rmtree(home)
        return ran.stdout.strip()

    job("f.add('name', {'a': 1})")
    assert job("print(f.find('name'))") == "{'a': 1}"
