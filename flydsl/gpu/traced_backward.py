"""Backward passes that torch traces for a posed GPU: of tensors on "cuda" that have no memory.

Torch's own engine is in C++ and asks for the streams of a GPU wherever a gradient is on one, which a build without CUDA
has none of. The nodes of its graph can be called from Python, too: this goes through them as the engine does.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from flydsl.errors import DeviceError
from flydsl.gpu.devices import is_traced

Edge = tuple[Any, int]
"""A node of the graph, and which of its inputs."""


def with_traced(run_backward: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.autograd.graph._engine_run_backward`, where outputs may be tensors on "cuda" without memory."""

    def run(outputs: Sequence[Any], *args: Any, **options: Any) -> Any:
        tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
        if is_traced(*tensors) and any(tensor.is_cuda for tensor in tensors):
            return _run(outputs, *args, **options)
        return run_backward(outputs, *args, **options)

    return run


def _run(
    outputs: Sequence[Any],
    gradients: Sequence[torch.Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] = (),
    allow_unreachable: bool = True,
    accumulate_grad: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    """Go backwards from outputs. Returns the gradients of `inputs`, or adds them to the `grad` of each."""
    if accumulate_grad:
        raise DeviceError(
            "backward() of tensors on a posed GPU that have no memory is unsupported",
            hint="torch.autograd.grad returns the gradients",
        )
    with torch.set_grad_enabled(create_graph):
        found = _BackwardPass([_edge(tensor) for tensor in inputs])
        found.run([(_edge(output), gradient) for output, gradient in zip(outputs, gradients, strict=True)])
    results = tuple(found.gradients)
    if not allow_unreachable and any(result is None for result in results):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
            "this is the desired behavior."
        )
    return results


def _edge(tensor: Any) -> Edge:
    edge: Any = get_gradient_edge(tensor) if isinstance(tensor, torch.Tensor) else tensor
    return edge[0], edge[1]


class _BackwardPass:
    """One pass through a graph. gradients: of the edges that are wanted, None of those that it does not come to."""

    def __init__(self, wanted: Sequence[Edge]) -> None:
        self._wanted = wanted
        self.gradients: list[torch.Tensor | None] = [None] * len(wanted)
        self._incoming: dict[Any, dict[int, torch.Tensor]] = {}
        self._awaited: Counter[Any] = Counter()
        self._ready: list[tuple[int, int, Any]] = []

    def run(self, roots: Sequence[tuple[Edge, torch.Tensor | None]]) -> None:
        """Begin with the gradients of the roots, and call each node when all that flows into it is there."""
        for node in _reachable([node for (node, _), _ in roots]):
            self._awaited.update(following for following, _ in node.next_functions if following is not None)
        for (node, number), gradient in roots:
            self._add(node, number, gradient)
        for node in {node for (node, _), _ in roots}:
            self._queue(node)
        while self._ready:
            node = heapq.heappop(self._ready)[-1]
            self._visit(node, self._incoming.pop(node, {}))

    def _visit(self, node: Any, incoming: dict[int, torch.Tensor]) -> None:
        for place, (wanted, number) in enumerate(self._wanted):
            if wanted is node:
                self.gradients[place] = incoming.get(number)
        following = node.next_functions
        outgoing = _called(node, incoming) if incoming and following else [None] * len(following)
        for (next_node, number), gradient in zip(following, outgoing, strict=True):
            if next_node is not None:
                self._add(next_node, number, gradient)
                self._awaited[next_node] -= 1
                self._queue(next_node)

    def _add(self, node: Any, number: int, gradient: torch.Tensor | None) -> None:
        if gradient is None:
            return
        incoming = self._incoming.setdefault(node, {})
        gradient = _fitted(gradient, node._input_metadata[number])
        incoming[number] = incoming[number] + gradient if number in incoming else gradient

    def _queue(self, node: Any) -> None:
        """The last nodes of the forward pass come first, as in torch's engine."""
        if self._awaited[node] == 0:
            heapq.heappush(self._ready, (-node._sequence_nr(), id(node), node))


def _reachable(roots: Sequence[Any]) -> Iterator[Any]:
    seen, rest = set(roots), [*roots]
    while rest:
        node = rest.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                rest.append(following)


def _called(node: Any, incoming: dict[int, torch.Tensor]) -> Sequence[torch.Tensor | None]:
    """The gradients of a node's inputs, with the place in the program that a trace notes beside what it computes."""
    about = node._input_metadata
    given: list[torch.Tensor | None] = [incoming.get(number) for number in range(len(about))]
    with _noted(node):
        if isinstance(node, torch.autograd.function.BackwardCFunction):  # of a function of the user's
            materialized = getattr(node, "materialize_grads", True)
            zeros = [torch.zeros(each.shape, dtype=each.dtype, device=each.device) for each in about]
            given = [z if g is None and materialized else g for g, z in zip(given, zeros, strict=True)]
            found = node.apply(*given)
            found = found if isinstance(found, tuple) else (found,)
            needed = iter([gradient for gradient, needed in zip(found, node.needs_input_grad, strict=True) if needed])
            return [None if following is None else next(needed) for following, _ in node.next_functions]
        found = node(*given)
    return found if isinstance(found, tuple) else (found,)


@contextmanager
def _noted(node: Any) -> Iterator[None]:
    from torch.fx import traceback  # brings much that a program without traces does not need

    traceback.set_stack_trace(node.metadata.get("traceback_", []))
    traceback.set_grad_fn_seq_nr(node._sequence_nr())
    traceback._mark_autograd_backward()
    try:
        yield
    finally:
        traceback.reset_grad_fn_seq_nr()
        traceback._reset_autograd_backward()


def _fitted(gradient: torch.Tensor, about: Any) -> torch.Tensor:
    """A gradient in the shape and type of its tensor, which may have been broadcast, or converted."""
    if gradient.shape != about.shape:
        gradient = gradient.sum_to_size(about.shape)
    if gradient.dtype != about.dtype:
        gradient = gradient.real if gradient.is_complex() and not about.dtype.is_complex else gradient
        gradient = gradient.to(about.dtype)
    return gradient
