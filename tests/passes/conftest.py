"""Small modules in, text out: what each pass makes of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from flydsl.compiler.fly_opt import run

_CHECK = re.compile(r"//\s*(CHECK(?:-NOT)?):\s*(.*)")


@pytest.fixture
def check() -> Callable[..., str]:
    """`check(text, *passes)` runs passes on a module with CHECK lines, and gives the result's text.

    The text of each `// CHECK:` comment must occur in the result, in that order; of `// CHECK-NOT:` nowhere in it.
    """

    def checked(text: str, *passes: str) -> str:
        result = run(text, passes)
        position = 0
        for kind, wanted in _CHECK.findall(text):
            if kind == "CHECK-NOT":
                assert wanted not in result, result
                continue
            found = result.find(wanted, position)
            assert found >= 0, f"{wanted!r} is not in\n{result[position:]}"
            position = found + len(wanted)
        return result

    return checked
