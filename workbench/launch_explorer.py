"""A launch that was timed, live: its timeline, and below it the run view."""

from __future__ import annotations

from flydsl.binary import BinaryLaunch
from flydsl.compiler import Launch
from workbench.kit.live_view import LiveView
from workbench.launch_view import launch_html, launch_text
from workbench.run.widget import RunExplorer
from workbench.thread_trace.widget import TracesExplorer


class LaunchExplorer(LiveView):
    """The timeline of each kernel, then the arguments, counters where there are some, and the stepper."""

    def __init__(self, launch: Launch | BinaryLaunch) -> None:
        self._launch = launch
        super().__init__([TracesExplorer(launch.traces), RunExplorer(launch)])

    def static_html(self) -> str:
        """The content for a page without widgets."""
        return launch_html(self._launch)

    def static_text(self) -> str:
        """The text for a terminal."""
        return launch_text(self._launch)
