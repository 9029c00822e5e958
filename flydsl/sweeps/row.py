"""A row of a sweep's table: the outcome of a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flydsl.simulator.estimates import Estimate
from flydsl.sweeps.config import Config

TIMES = ("time_us", "estimate_us")
ERROR, IS_COMPARED = "estimate_error_percent", "estimate_is_compared"
_MOST_CHARS = 40


@dataclass(frozen=True, eq=False)
class Row:
    """The outcome of a point.

    values: by column: resources (`waves_per_simd`, `vgprs`, `lds_bytes`, …), counters, and on the simulator
    `estimate_us` with `estimate_error_percent` and `estimate_is_compared` (see `flydsl.simulator.estimates`; none if
    the error is not known), `bound` and what limits the call (`limits.limits`), on a GPU `time_us`. error: the text of
    what went wrong, None if nothing did.
    note: what is missing, and why.
    """

    launcher: str
    shape: dict[str, Any]
    config: Config
    arch: str
    values: dict[str, Any]
    error: str | None = None
    note: str | None = None

    def record(self) -> dict[str, Any]:
        """The row as one flat dict, for example for `pandas.DataFrame(table.records())`."""
        about = {"launcher": self.launcher, "arch": self.arch, **self.shape, **self.config.to_dict()}
        return {**self.values, **about, "error": self.error, "note": self.note}

    def __getitem__(self, column: str) -> Any:
        """A column's value, None where the row has none."""
        return self.record().get(column)

    @property
    def time_us(self) -> float | None:
        """The measured time, or the estimate; None if there is neither."""
        return next((self.values[name] for name in TIMES if name in self.values), None)

    @property
    def time_text(self) -> str:
        """The time with its unit, an estimate with its error; empty without a time."""
        if "time_us" in self.values:
            return f"{cell_text(self.time_us)} us"
        return "" if self.time_us is None else str(self._estimate)

    @property
    def _estimate(self) -> Estimate:
        return Estimate(self.values["estimate_us"], self.values.get(ERROR), self.values.get(IS_COMPARED, True))

    def text(self, column: str) -> str:
        """A column's value in a few characters, an estimate with its error.

        >>> Row("f", {}, Config(), "gfx942", {"estimate_us": 0.5, "estimate_error_percent": 20.0}).text("estimate_us")
        '0.5 ± 20 %'
        """
        text = cell_text(self[column])
        return f"{text} {self._estimate.error}" if text and column == "estimate_us" else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.record() == other.record()

    def __repr__(self) -> str:
        """The row in a line.

        >>> Row("scale", {"n": 1000}, Config(block=64), "gfx942", {"estimate_us": 0.5, "waves_per_simd": 8})
        <scale n=1000, block=64 on gfx942: estimate_us 0.5 ± ?, waves_per_simd 8>
        """
        given = ", ".join(f"{n}={cell_text(v)}" for n, v in (self.shape | self.config.to_dict()).items())
        found = (
            self.error.splitlines()[0]
            if self.error
            else ", ".join(f"{name} {self.text(name)}" for name in (*TIMES, "waves_per_simd") if name in self.values)
        )
        return f"<{self.launcher} {given}{self.arch and ' on '}{self.arch}: {found}>"


def cell_text(value: Any) -> str:
    """A value in a few characters; nothing for None.

    >>> cell_text(0.123456), cell_text(None), cell_text((64, 128))
    ('0.1235', '', '(64, 128)')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join((getattr(value, "__name__", None) or str(value)).split())
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 1] + "…"
