"""A configuration: one choice of compile-time arguments and compiler hints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.errors import ArgumentError


class Config:
    """One choice of arguments, by the names of the launcher's parameters.

    pre_hook: called with all arguments by name before each launch. num_warps: an argument of that name.
    waves_per_eu, maxnreg: compiler hints (`flydsl.compiler.hints`).
    """

    def __init__(
        self,
        *positional: Any,
        num_warps: int | None = None,
        waves_per_eu: int | None = None,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if positional:
            raise ArgumentError(
                f"Config({', '.join(map(repr, positional))}): a configuration takes the launcher's parameters by name",
                hint="pass Config(block=64, waves_per_eu=2), for example",
            )
        self.kwargs = kwargs if num_warps is None else {**kwargs, "num_warps": num_warps}
        self.num_warps, self.waves_per_eu, self.maxnreg = num_warps, waves_per_eu, maxnreg
        self.pre_hook = pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return dict(self.kwargs)

    @property
    def compiler_opts(self) -> dict[str, Any]:
        """The compiler hints that are given."""
        hints = {"waves_per_eu": self.waves_per_eu, "maxnreg": self.maxnreg}
        return {name: value for name, value in hints.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """The arguments and compiler hints by name, without the hook.

        >>> Config.from_dict(Config(block=64, waves_per_eu=2).to_dict())
        Config(block=64, waves_per_eu=2)
        """
        return {**self.kwargs, **self.compiler_opts}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Config:
        """The configuration of such a dict."""
        return cls(**values)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"
