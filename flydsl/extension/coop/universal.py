"""All of `fx.coop`, under the name of FlyDSL's portable implementations. Here there is one implementation."""

from flydsl.expr.coop import *  # noqa: F403
