from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

import pytest

from flydsl.missing_attributes import Explained


@pytest.fixture
def explained() -> Explained:
    class Holder(Explained):
        elsewhere: ClassVar[Mapping[str, str]] = {"isa": "it is .artifact.isa"}

        def kernels(self) -> None: ...

        @property
        def broken(self) -> str:
            raise AttributeError("a reason of its own")

    return Holder()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("isa", "'Holder' object has no attribute 'isa'; it is .artifact.isa"),
        ("kernles", "'Holder' object has no attribute 'kernles'; did you mean kernels?"),
        ("_kernels", "'Holder' object has no attribute '_kernels'"),
        ("explore", "'Holder' object has no attribute 'explore'; %load_ext workbench adds it in a notebook, and "),
        ("broken", "a reason of its own"),
    ],
)
def test_an_attribute_that_is_missing_is_told_where_it_is(explained: Explained, name: str, told: str) -> None:
    with pytest.raises(AttributeError, match="^" + re.escape(told)):
        getattr(explained, name)
