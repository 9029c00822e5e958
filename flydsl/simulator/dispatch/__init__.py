"""A launch before it starts: `prepared_kernel` has what all launches of a kernel with the same sizes share, `dispatch`
the launch with its arguments and its memory."""

from flydsl.simulator.dispatch.dispatch import Dispatch, LaunchStatistics
from flydsl.simulator.dispatch.prepared_kernel import LdsSize, PreparedKernel

__all__ = ["Dispatch", "LaunchStatistics", "LdsSize", "PreparedKernel"]
