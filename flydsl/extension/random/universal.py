"""All of `fx.random`, under the name of FlyDSL's portable implementations. Here there is one implementation."""

from flydsl.expr.random import *  # noqa: F403
