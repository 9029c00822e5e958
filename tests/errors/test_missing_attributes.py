from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from flydsl.errors.missing_attributes import Explained


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
        ("isa", "it is .artifact.isa"),
        ("kernles", "did you mean kernels?"),
        ("_kernels", "it has broken, explore, kernels"),
        ("explore", "%load_ext workbench adds it in a notebook, and "),
    ],
)
def test_an_attribute_that_is_missing_is_told_where_it_is(explained: Explained, name: str, told: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(explained, name)
    message, at, line, _carets, hint = str(caught.value).splitlines()
    assert message == f"'Holder' object has no attribute {name!r}"
    assert at.startswith(f"  at {__file__}:")
    assert line.strip() == "getattr(explained, name)"
    assert hint.startswith(f"  hint: {told}")


def test_an_attribute_that_raises_keeps_its_error(explained: Explained) -> None:
    with pytest.raises(AttributeError, match=r"^a reason of its own"):
        _ = explained.broken
