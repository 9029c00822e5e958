"""`flydsl.env` under the name that the DSL's documents promise, and FlyDSL's groups of variables as attributes.

    env.compile.arch, env.debug.dump_ir, env.runtime.cache_dir

Each is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flydsl.env import *  # noqa: F403
from flydsl.env import cache_dir, debug_info, dump_dir, flag, opt_level, text


class EnvManager:
    """A group of variables. readers: attribute -> what reads it."""

    def __init__(self, readers: Mapping[str, Callable[[], Any]]) -> None:
        self._readers = dict(readers)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._readers:
            raise AttributeError(f"no setting {name!r}; there is {', '.join(self.__dict__.get('_readers', ()))}")
        return self._readers[name]()

    def __dir__(self) -> list[str]:
        return list(self._readers)


autotune = EnvManager({
    "config_dir": lambda: text("FLYDSL_AUTOTUNE_CONFIG_DIR"),
})  # fmt: skip
compile = EnvManager({
    "opt_level": opt_level,
    "compile_only": lambda: flag("COMPILE_ONLY"),
    "arch": lambda: text("ARCH"),
    "backend": lambda: "rocm",
})  # fmt: skip
debug = EnvManager({
    "dump_asm": lambda: flag("FLYDSL_DEBUG_DUMP_ASM"),
    "dump_ir": lambda: flag("FLYDSL_DUMP_IR"),
    "dump_dir": dump_dir,
    "ast_diff": lambda: flag("FLYDSL_DEBUG_AST_DIFF"),
    "log_level": lambda: text("FLYDSL_DEBUG_LOG_LEVEL", "WARNING"),
    "log_to_file": lambda: text("FLYDSL_DEBUG_LOG_TO_FILE"),
    "log_to_console": lambda: flag("FLYDSL_DEBUG_LOG_TO_CONSOLE"),
    "print_origin_ir": lambda: flag("FLYDSL_DEBUG_PRINT_ORIGIN_IR"),
    "print_after_all": lambda: flag("FLYDSL_DEBUG_PRINT_AFTER_ALL"),
    "enable_debug_info": debug_info,
    "enable_verifier": lambda: flag("FLYDSL_DEBUG_ENABLE_VERIFIER", default=True),
})  # fmt: skip
runtime = EnvManager({
    "cache_dir": cache_dir,
    "enable_cache": lambda: flag("FLYDSL_RUNTIME_ENABLE_CACHE", default=True),
    "kind": lambda: "rocm",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flydsl.expr.flydsl_names.names import unknown_name  # loads the language, which the variables do not need

    return unknown_name(__name__, globals())(name)
