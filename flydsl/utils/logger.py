"""The log, named `flydsl`: what `FLYDSL_DEBUG_LOG_LEVEL` lets through goes to the console or a file."""

from __future__ import annotations

import logging

from flydsl import env
from flydsl.errors import ArgumentError

__all__ = ["log"]


def _made() -> logging.Logger:
    logger = logging.getLogger("flydsl")
    level = env.text("FLYDSL_DEBUG_LOG_LEVEL", "WARNING").upper()
    if not isinstance(logging.getLevelName(level), int):
        raise ArgumentError(
            f"FLYDSL_DEBUG_LOG_LEVEL must be a level, got {level!r}", hint="set DEBUG, INFO, WARNING or ERROR"
        )
    logger.setLevel(level)
    form = logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s")
    handlers: list[logging.Handler] = []
    if env.flag("FLYDSL_DEBUG_LOG_TO_CONSOLE"):
        handlers.append(logging.StreamHandler())
    if path := env.text("FLYDSL_DEBUG_LOG_TO_FILE"):
        handlers.append(logging.FileHandler(path, delay=True))
    for handler in handlers:
        handler.setFormatter(form)
        logger.addHandler(handler)
    return logger


log = _made()
