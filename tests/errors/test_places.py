"""Where a function stands in its file."""

from __future__ import annotations

import ast
import collections
import inspect
import linecache
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flydsl.errors.places import is_user_frame, source_lines

ROOT = Path(__file__).parents[2]


def functions(code: types.CodeType) -> Iterator[types.CodeType]:
    """The functions with a `def` in some code."""
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            if const.co_flags & inspect.CO_NEWLOCALS and not const.co_name.startswith("<"):
                yield const
            yield from functions(const)


def tree(lines: list[str]) -> str:
    return ast.dump(ast.parse(("if True:\n" if lines[0][:1].isspace() else "") + "".join(lines)).body[0])


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["kernels", "flydsl/expr"])
def test_the_lines_of_a_function_are_those_that_inspect_finds(folder: str) -> None:
    found = 0
    for path in sorted((ROOT / folder).glob("*.py")):
        lines = linecache.getlines(str(path))
        for code in functions(compile("".join(lines), str(path), "exec")):
            own, first = source_lines(code)
            assert tree(own) == tree(inspect.getblock(lines[first - 1 :])), f"{path}:{first} {code.co_name}"
            found += 1
    assert found > 50


def test_strings_and_brackets_may_end_left_of_their_function(tmp_path: Path) -> None:
    file = tmp_path / "functions.py"
    file.write_text(
        'if True:\n    def text(a):\n        return """\nleft\n"""\n\n    def listed(a):\n        return [\n  a,\n]\n'
        "# not the function's\n    def last(a): return a\n"
    )
    code = compile(file.read_text(), str(file), "exec")
    ends = {one.co_name: (source_lines(one)[1] + len(source_lines(one)[0]) - 1) for one in functions(code)}
    assert ends["text"] in (5, 6)
    assert ends["listed"] in (10, 11)
    assert ends["last"] == 12


def test_the_constructor_of_a_named_tuple_is_not_the_users() -> None:
    def frame(function: Any) -> Any:
        return types.SimpleNamespace(f_code=function.__code__, f_globals=function.__globals__)

    made: Any = collections.namedtuple("made", "x")
    assert not is_user_frame(frame(made.__new__))
    assert is_user_frame(frame(frame))
