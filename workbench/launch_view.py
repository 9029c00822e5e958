"""A launch as `workbench.profile` and `workbench.trace` return it: what was counted, and what was timed."""

from __future__ import annotations

from flydsl.binary import BinaryLaunch
from flydsl.compiler import Launch
from workbench.run.view import arguments_html, run_html, run_text
from workbench.thread_trace.view import launch_traces_html, launch_traces_text


def launch_html(launch: Launch | BinaryLaunch) -> str:
    """The run view; of a launch that was timed the timeline, and the counters only if there are some."""
    if not launch.traces:
        return run_html(launch)
    run = run_html(launch) if launch.counters else arguments_html(launch)
    return f"<div>{run}{launch_traces_html(launch)}</div>"


def launch_text(launch: Launch | BinaryLaunch) -> str:
    """The same as text."""
    if not launch.traces:
        return run_text(launch)
    timed = launch_traces_text(launch)
    return f"{run_text(launch)}\n\n{timed}" if launch.counters else timed
