"""torch's operators in a benchmark: those that take long wait as launches do, until somebody reads what they write.

A benchmark asks for the time of an operator, which follows from the sizes of its tensors. So one that works on large
tensors, or on what launches that wait will write, gets results without content (of the sizes that torch's own rules on
"meta" give), and runs when they are read. Operators that draw random numbers or whose sizes depend on content run now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_map_only

from flydsl.gpu.devices import tensors_in
from flydsl.gpu.memory import MEMORY
from flydsl.gpu.on_host import run_on_host
from flydsl.gpu.tensor import GpuTensor, on_gpu
from flydsl.gpu.waiting import WAITING, uses_content
from flydsl.simulator.checks import enabled_checks

_LARGE_BYTES = 1 << 20
_TAGS = (torch.Tag.nondeterministic_seeded, torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)


class _Place(NamedTuple):
    """A tensor that an operator works on when it runs. A tensor itself would be held by its own operator."""

    storage: int
    dtype: torch.dtype
    offset: int
    size: torch.Size
    stride: tuple[int, ...]

    def tensor(self) -> torch.Tensor:
        made = torch.empty(0, dtype=self.dtype, device="cpu")
        return made.set_(WAITING.storages[self.storage], self.offset, self.size, self.stride)


def put_off(operator: Any, args: Any, kwargs: dict[str, Any], index: int | None) -> Any:
    """The results of an operator that waits, on the GPU of a number; None if it has to run now."""
    operands = [*tensors_in((*args, *kwargs.values()))]
    if index is None or not operands or not _may_wait(operator, operands, kwargs):
        return None
    with torch._C._DisableTorchDispatch():
        found: Any = None
        results: list[torch.Tensor] = []
        if not operator._schema.is_mutable:
            found, results = _empty_results(operator, args, kwargs, index)
            if not _touches_waiting(operands) and _size_bytes((*operands, *results)) < _LARGE_BYTES:
                return None
        elif _touches_waiting(operands):
            found = args[0]
        if found is None:
            return None
        written = results or [args[0]]
        reads, writes = ([tensor.untyped_storage() for tensor in tensors] for tensors in (operands, written))
        values, options = tree_map_only(torch.Tensor, _place, (args, kwargs))
        places = [_place(result) for result in results]
    WAITING.forget()
    WAITING.add_work(reads, writes, lambda: _carry_out(operator, values, options, places))
    WAITING.left_out.leave(*map(_range, written))
    return found


def _may_wait(operator: Any, operands: Sequence[torch.Tensor], kwargs: dict[str, Any]) -> bool:
    schema = operator._schema
    if (
        not uses_content(operator)
        or MEMORY.captured is not None
        or enabled_checks()
        or kwargs.get("device") is not None
    ):
        return False
    if any(tag in operator.tags for tag in _TAGS) or not all(isinstance(one, GpuTensor) for one in operands):
        return False
    if any(tensor.layout is not torch.strided or tensor.is_complex() for tensor in operands):
        return False
    written = [argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write]
    if written and (written != [schema.arguments[0].name] or len(schema.returns) != 1):
        return False  # operators with `out`, or that change several
    return all(str(result.type) == "Tensor" for result in schema.returns)


def _touches_waiting(operands: Sequence[torch.Tensor]) -> bool:
    return bool(WAITING) and any(tensor.untyped_storage()._cdata in WAITING.storages for tensor in operands)


def _empty_results(operator: Any, args: Any, kwargs: Any, index: int) -> tuple[Any, list[torch.Tensor]]:
    """Results without content, together and one by one; None where torch cannot tell their sizes."""
    try:
        found = operator(*tree_map_only(torch.Tensor, _meta, args), **tree_map_only(torch.Tensor, _meta, kwargs))
    except (NotImplementedError, RuntimeError, ValueError, IndexError, TypeError):  # which running it tells better
        return None, []
    made = tree_map_only(torch.Tensor, lambda one: on_gpu(torch.empty_strided(
        one.size(), one.stride(), dtype=one.dtype, device="cpu"), index), found)  # fmt: skip
    return made, [*tensors_in([made])]


def _meta(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _size_bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def _place(tensor: torch.Tensor) -> _Place:
    storage = tensor.untyped_storage()
    return _Place(storage._cdata, tensor.dtype, int(tensor.storage_offset()), tensor.size(), tensor.stride())


def _range(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses of a tensor's storage."""
    with torch._C.DisableTorchFunctionSubclass():
        storage = torch.Tensor.untyped_storage(tensor)
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _carry_out(operator: Any, args: Any, kwargs: Any, results: Sequence[_Place]) -> None:
    def tensors(value: Any) -> Any:
        if isinstance(value, _Place):
            return value.tensor()
        return type(value)(map(tensors, value)) if isinstance(value, list | tuple) else value

    with torch.no_grad():
        found = run_on_host(operator, tensors(args), {name: tensors(value) for name, value in kwargs.items()})
        for place, one in zip(results, found if isinstance(found, tuple | list) else [found], strict=False):
            place.tensor().copy_(one)
