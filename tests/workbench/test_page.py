"""The exported page and the command that writes it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

import workbench
from flydsl.errors import ArgumentError
from tests.kernels.cases import every_case
from tests.kernels.test_figures import PLACES
from tests.processes import run_python
from tests.stages import STAGE_COUNT
from workbench.__main__ import main
from workbench.machine_code import content as machine_code
from workbench.page import page
from workbench.stages.levels import levels

SCRIPT = """
import sys
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def k(A: fx.Tensor, by: fx.Constexpr[int]):
    i = fx.thread_idx.x
    A[i] = A[i] * {value}

@flyc.jit
def first(A: fx.Tensor, by: fx.Constexpr[int]):
    k(A, by).launch(grid=1, block=64)

@flyc.jit
def second(A: fx.Tensor, by: fx.Constexpr[int]):
    k(A, by).launch(grid=1, block=64)

if __name__ == "__main__":
    A = torch.ones(64)
    first(A, 3)
    second(A, 3)
    second(A, 3)
    print("argument", sys.argv[1:], float(A[0]))
"""


class Reader(HTMLParser):
    """A page's tags with their attributes, its visible text, and the parts that are packed in it, by name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.parts: dict[str, str] = {}
        self._inside: tuple[str, dict[str, str | None]] = ("", {})
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = self.tags[-1]

    def handle_endtag(self, tag):
        self._inside = ("", {})

    def handle_data(self, data):
        tag, attributes = self._inside
        if attributes.get("type") == "application/x-packed":
            self.parts[attributes["id"]] = zlib.decompress(base64.b64decode(data)).decode()
        elif tag not in ("script", "style"):
            self.text += data

    @property
    def everything(self) -> str:
        """Its text and that of its parts, as HTML puts it."""
        packed = (part for name, part in self.parts.items() if not part.startswith("{"))
        return self.text + "".join(Reader(part).text for part in packed)

    def contents(self) -> list[dict]:
        """The linked levels of the first compilation."""
        names = [name for name in self.parts if re.fullmatch(r"part-0-level-\d+", name)]
        return [json.loads(self.parts[name]) for name in names]


@pytest.fixture(scope="module")
def exported(launcher, tmp_path_factory):
    import torch

    pipeline = launcher.lower(torch.ones(128), torch.ones(128), torch.zeros(128), 128).run()
    return pipeline, workbench.export(pipeline, tmp_path_factory.mktemp("page") / "out.html").read_text("utf-8")


def test_it_fetches_nothing(exported):
    found = Reader(exported[1])
    addresses = [v for _, attrs in found.tags for n, v in attrs.items() if n in ("src", "href", "srcset", "action")]
    assert addresses
    assert not [a for a in addresses if not a.startswith(("data:image/svg+xml", "#"))]
    assert "default-src 'none'" in exported[1]
    assert not re.search(r"https?://", re.sub(r"http://www\.w3\.org/2000/svg", "", exported[1]))


def test_the_list_of_contents_leads_to_every_heading(launcher, tensors):
    pipelines = [launcher.lower(*tensors, 128, scale, arch=arch) for scale, arch in ((2, "gfx942"), (3, "gfx950"))]
    found = Reader(page([pipelines[0].run(), pipelines[1]]))
    headings = [attributes["id"] for tag, attributes in found.tags if tag in ("h1", "h2")]
    assert [attributes["href"] for tag, attributes in found.tags if tag == "a"] == [f"#{name}" for name in headings]
    assert len(set(headings)) == len(headings) == 2 + 6 + 4
    assert "launch(scale=2) for gfx942: Pipeline · What each stage changed · " in found.text
    assert "launch(scale=3) for gfx950: Pipeline · " in found.text


def test_every_level_is_in_it(exported):
    pipeline, text = exported
    found = Reader(text)
    forms = levels(pipeline)
    meta = json.loads(found.parts["part-0-level"])
    assert [level["name"] for level in meta["levels"]] == [level.name for level in forms]
    assert [len(content["lines"]) for content in found.contents()] == [len(level.lines) for level in forms]


def test_the_kernel_cannot_put_script_in_it(exported, read):
    """Its source has a script in a comment and in its file's name."""
    found = Reader(exported[1])
    assert sum(tag == "script" and "type" not in attrs for tag, attrs in found.tags) == 1
    pages = [found, *(Reader(part) for part in found.parts.values() if not part.startswith("{"))]
    for attributes in (attrs for shown in pages for _, attrs in shown.tags):
        assert not [name for name in attributes if name.startswith("on")]
    assert not [tag for shown in pages[1:] for tag, _ in shown.tags if tag == "script"]
    for content in found.contents():
        for line in content["lines"]:
            assert "<script" not in line
            assert set(re.findall(r"<(\w+)", line)) <= {"span"}
    for name in found.parts:
        if "-stage-" in name:
            rows = json.loads(found.parts[name])["rows"]
            lines = [side for row in rows for side in row[3:5] if side]
            assert set(re.findall(r"<(\w+)", "".join(lines))) <= {"span", "u"}
    source = "".join(Reader(line).text for line in found.contents()[0]["lines"])
    assert '<script>alert("comment")</script>' in source


def test_every_part_has_its_place(exported):
    found = Reader(exported[1])
    places = [attrs["data-packed"] for _, attrs in found.tags if "data-packed" in attrs]
    places += [attrs["data-isa"] for _, attrs in found.tags if "data-isa" in attrs]
    assert places
    assert {name for name in found.parts if not re.search("-(level|stage)", name)} == set(places)


def test_machine_code_is_in_it_as_its_view_takes_it(exported):
    pipeline, text = exported
    code = pipeline.artifact.code
    assert json.loads(Reader(text).parts["part-0-isa-0"]) == json.loads(
        json.dumps(machine_code.content(code, code.kernels[0].name))
    )


def test_a_long_page_is_small(launcher, tensors):
    """Texts, with the markup that they are shown with, take a third of their size, but for what all pages share."""
    text = page([launcher.lower(*tensors, 128).run()])
    shared = sum(map(len, re.findall(r"<(?:style|script)>.*?</(?:style|script)>", text, re.DOTALL)))
    assert len(text) - shared < sum(map(len, Reader(text).parts.values())) / 3


def test_it_holds_everything_that_the_views_hold(exported):
    found = Reader(exported[1])
    text = found.everything + found.parts["part-0-isa-0"]
    for expected in ("fly-layout-lowering", "global_store_dword", "waves per SIMD", "Layouts", "Occupancy"):
        assert expected in text


def test_it_names_no_folder_of_the_machine(exported):
    found = Reader(exported[1])
    assert not re.search(
        r"/tmp|/kernels0/", found.everything + found.parts["part-0-level"] + found.parts["part-0-isa-0"]
    )


def test_it_is_the_same_each_time_but_for_times(launcher, tensors):
    one, other = (page([launcher.lower(*tensors, 128).run()]) for _ in range(2))
    time = re.compile(r'>\d+\.\d\d</td>|"time":[\d.]+')
    assert time.search(one)
    assert time.sub("", one) == time.sub("", other)


def test_an_unfinished_pipeline_has_a_page(launcher, tensors):
    pipeline = launcher.lower(*tensors, 128)
    assert f"0 of {STAGE_COUNT} stages done" in page([pipeline])
    pipeline.run(until=2)
    assert f"2 of {STAGE_COUNT} stages done" in page([pipeline])


def test_a_section_that_fails_is_a_line(pipeline, monkeypatch):
    def fails(*_):
        raise ValueError("no <layouts> today")

    monkeypatch.setattr("workbench.page.layouts_html", fails)
    with pytest.warns(UserWarning, match="the page has no section 'Layouts': no <layouts> today"):
        read = Reader(page([pipeline.run()]))
    assert "could not be made: ValueError: no <layouts> today" in read.text
    assert "Machine code" in read.text


@pytest.mark.sweep
@pytest.mark.filterwarnings("error:the page has no section")
@pytest.mark.parametrize(("name", "arch"), PLACES)
def test_every_kernel_of_the_library_has_a_page(name, arch):
    launcher, arguments = every_case()[name].make()
    pipeline = launcher.lower(*arguments, arch=arch)
    pipeline.run()
    assert "Occupancy" in Reader(page([pipeline])).text


def test_what_has_no_page():
    with pytest.raises(ArgumentError, match="a int has no page"):
        workbench.export(3, "x.html")
    with pytest.raises(ArgumentError, match="no compilation"):
        workbench.export([], "x.html")


def test_a_folder_that_is_not_there(pipeline, tmp_path):
    with pytest.raises(ArgumentError, match="there is no folder"):
        workbench.export(pipeline, tmp_path / "nowhere" / "x.html")


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def script(tmp_path: Path):
    def write(value: str = "by") -> str:
        path = tmp_path / "k.py"
        path.write_text(SCRIPT.format(value=value))
        return str(path)

    return write


def headings(page: Path) -> list[str]:
    return re.findall("<h1 .*?><code>(.*?)</code>", page.read_text())


def test_export_runs_the_script_and_writes_its_compilations(script, tmp_path, capsys):
    out = tmp_path / "out.html"
    assert main(["export", script(), str(out), "--", "x", "-y"]) == 0
    assert "argument ['x', '-y'] 27.0" in capsys.readouterr().out
    assert headings(out) == ["first(by=3) for gfx942", "second(by=3) for gfx942"]


def test_export_of_one_launcher_for_another_target(script, tmp_path, capsys):
    out = tmp_path / "out.html"
    assert main(["export", script(), str(out), "--launcher", "second", "--arch", "gfx950"]) == 0
    assert headings(out) == ["second(by=3) for gfx950"]
    assert "wrote" in capsys.readouterr().out


def test_export_of_a_script_that_does_not_launch(script, tmp_path, capsys):
    assert main(["export", script(), str(tmp_path / "out.html"), "--launcher", "third"]) == 1
    assert "there was no launch of third in it" in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


def test_export_of_a_script_that_fails_to_trace(script, tmp_path, capsys):
    assert main(["export", script("'text'"), str(tmp_path / "out.html")]) == 1
    assert "k.py:10" in capsys.readouterr().err


def test_the_module_is_a_command(script, tmp_path):
    done = run_python("-m", "workbench", "export", "--help")
    assert done.returncode == 0, done.stderr
    assert "self-contained page" in done.stdout
