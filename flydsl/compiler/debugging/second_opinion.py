"""A launch compiled and interpreted, on copies of its tensors: the first element that differs, and who wrote it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.compiler.debugging.calls import Call, differing
from flydsl.compiler.debugging.interpreted import interpreting
from flydsl.compiler.debugging.suspicions import race_in
from flydsl.errors import ArgumentError, DeviceError
from flydsl.errors.places import user_location
from flydsl.interpreter import Write, watched


class Disagreement(DeviceError):
    """A launch that gives one result compiled and another interpreted.

    tensor, element: where, by the launcher's argument and the element's coordinate. compiled, interpreted: the numbers
    there. write: who wrote it last where it was interpreted; None if nothing did. race: a hint at the launch's race, if
    it has one.
    """

    def __init__(
        self, *, tensor: str, element: tuple[int, ...], count: int, compiled: Any, interpreted: Any,
        write: Write | None, race: str,
    ) -> None:  # fmt: skip
        others = f", and {count - 1} more elements differ" if count > 1 else ""
        where = f"{tensor}[{', '.join(map(str, element))}]"
        by = "nothing wrote it where it was interpreted"
        if write is not None:
            by = f"written last by lane {write.lane}, thread {write.thread} of workgroup {write.workgroup}"
        super().__init__(
            f"{where} is {compiled} compiled and {interpreted} interpreted{others}\n  {by}",
            at=None if write is None else write.at,
            hint=race
            or "one of the two is wrong: stop in this line with flydsl.interpreting(), and look at what it is made of",
        )
        self.tensor, self.element, self.compiled, self.interpreted, self.write = (
            tensor, element, compiled, interpreted, write,
        )  # fmt: skip


def compare_interpreted(
    launch: Callable[..., Any], *args: Any, rtol: float = 1e-2, atol: float = 1e-3, **kwargs: Any
) -> None:
    """Launch on copies of the tensors, compiled and interpreted. Raises Disagreement at the first element that differs.

    args, kwargs: of the launcher; tensors may be in lists, tuples and dicts. rtol, atol: how far floats may differ, as
    in `torch.isclose`: results of matrix instructions and of `fx.math` are rounded elsewhere. Nothing is written to the
    tensors that are given.
    """
    if not callable(launch):
        raise ArgumentError(f"{launch!r} is not a launcher", at=user_location(), hint="pass a function with @flyc.jit")
    given = Call.of_launcher(launch, args, kwargs)
    compiled, interpreted = given.copy(), given.copy()
    with interpreting(False):
        compiled()
    with interpreting():
        interpreted()
    for (name, one), (_, other) in zip(compiled.tensors(), interpreted.tensors(), strict=True):
        different = differing(one, other, rtol, atol)
        if bool(different.any()):
            element = tuple(int(i) for i in different.nonzero()[0])
            raise Disagreement(
                tensor=name,
                element=element,
                count=int(different.sum()),
                compiled=one[element].item(),
                interpreted=other[element].item(),
                write=_writer(given, name, element),
                race=race_in(given),
            )


def _writer(launch: Call, name: str, element: tuple[int, ...]) -> Write | None:
    """The last write to an element of a tensor, found by interpreting the launch again."""
    again = launch.copy()
    tensor = dict(again.tensors())[name]
    offset = sum(i * stride for i, stride in zip(element, tensor.stride(), strict=True))
    address = tensor.data_ptr() + offset * tensor.element_size()
    with interpreting(), watched(address, tensor.element_size()) as writes:
        again()
    return writes[-1] if writes else None
