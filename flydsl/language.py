"""The release of FlyDSL that programs are written for."""

from __future__ import annotations

from contextlib import AbstractContextManager

from flydsl import env
from flydsl.errors import ArgumentError, did_you_mean


def language(release: str) -> AbstractContextManager[None]:
    """Inside the `with` block, programs are taken as written for a release of FlyDSL: 0.5.0, 0.4.2 or 0.2.2.

    It holds for this thread. 0.2.2 differs from the others in the types that operators give
    (`flydsl.expr.numbers.promotion`) and in register tensors that are read before they are written, which are zeros
    with a warning; and 0.4.2 from 0.5.0 in nothing but `flydsl.__version__`, which is the release.
    What counts is the release while a launcher is called, which is when it is traced; its code is kept apart from that
    of the others. `FLYDSL_LANGUAGE` is the same for a whole process; 0.5.0 where it is not set.

    Raises ArgumentError for another release.

    >>> import flydsl
    >>> with flydsl.language("0.2.2"):
    ...     print(flydsl.__version__)
    0.2.2
    >>> flydsl.__version__
    '0.5.0'
    >>> flydsl.language("0.4")
    Traceback (most recent call last):
        ...
    flydsl.errors.ArgumentError: there is no language 0.4
    ...
    """
    if release not in env.LANGUAGES:
        hint = f"choose {', '.join(env.LANGUAGES)}; {did_you_mean(str(release), list(env.LANGUAGES))}".strip("; ")
        raise ArgumentError(f"there is no language {release}", hint=hint)
    return env.replaced({"FLYDSL_LANGUAGE": release})
