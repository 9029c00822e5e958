"""`flydsl.env` under the name that the DSL's documents promise."""

from flydsl.env import *  # noqa: F403
