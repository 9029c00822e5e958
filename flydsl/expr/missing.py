"""Errors about names and modules that are missing: FlyDSL's that are unsupported, and misspelt ones."""

from __future__ import annotations

import dis
import sys
from collections.abc import Sequence
from types import FrameType, ModuleType

from flydsl.errors import MissingImport, MissingName

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]

# Modules of FlyDSL 0.2 to 0.4.2, and of its development since, that are unsupported; those below them are, too.
UNSUPPORTED_MODULES = frozenset({
    "flydsl.compiler._aot", "flydsl.compiler.backends._rocm_ktrace", "flydsl.compiler.backends._rocm_ktrace_trace",
    "flydsl.compiler.backends.ktrace", "flydsl.compiler.diagnostics", "flydsl.compiler.external_llvm",
    "flydsl.compiler.link_utils", "flydsl.compiler.mlir_utils", "flydsl.compiler.scf_control_flow", "flydsl.expr.enum",
    "flydsl.expr.experimental", "flydsl.expr.iket", "flydsl.expr.iket_emit", "flydsl.expr.ktrace",
    "flydsl.expr.ktrace_common", "flydsl.expr.lowlevel", "flydsl.expr.nvvm", "flydsl.expr.pinned_vgpr",
    "flydsl.expr.register", "flydsl.expr.rocdl.cdna5", "flydsl.expr.rocdl.enum", "flydsl.expr.rocdl.experimental",
    "flydsl.expr.rocdl.ktrace_emit", "flydsl.expr.rocdl.ktrace_format", "flydsl.expr.rocdl.memory",
    "flydsl.expr.rocdl.random", "flydsl.expr.rocdl.utils", "flydsl.expr.signal_ops", "flydsl.extension.coop.block",
    "flydsl.extension.coop.universal", "flydsl.extension.coop.warp", "flydsl.runtime.device_runtime.base",
    "flydsl.runtime.device_runtime.rocm",
})  # fmt: skip


def unsupported(name: str) -> str:
    """The text for a name that FlyDSL has.

    >>> unsupported("flydsl.expr.ktrace")
    "flydsl.expr.ktrace is part of FlyDSL's API, but unsupported"
    """
    return f"{name} is part of FlyDSL's API, but unsupported"


def name_error(text: str, hint: str | None = None) -> MissingName | MissingImport:
    """The error that a module's `__getattr__` raises: an AttributeError, or an ImportError where an `import` asks.

    Of an AttributeError, `from module import name` makes an ImportError of its own, which would lose the text.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name == "__getattr__":
        frame = frame.f_back
    if frame is not None and frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
        return MissingImport(text, hint=hint)
    return MissingName(text, hint=hint)


class _Finder:
    """The last finder of modules: says of FlyDSL's modules that they are unsupported."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name in UNSUPPORTED_MODULES or name.rpartition(".")[0] in UNSUPPORTED_MODULES:
            error = MissingImport(unsupported(name))
            error.name = name  # which tells Python that it is this module, and none that it imports
            raise error


def install() -> None:
    """Have imports of FlyDSL's modules say that they are unsupported."""
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)
