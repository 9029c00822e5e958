"""The product of a compilation: machine code, the compiled launcher, and the record of how it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from flydsl.codegen import CodeObject, Kernel
from flydsl.compiler.arguments.argument import STREAM, PointerArgument, TensorArgument
from flydsl.compiler.arguments.pointer_argument import from_c_void_p
from flydsl.compiler.jit_argument import AdaptAll, adapter, tensor_place
from flydsl.compiler.lowering.host_part import formats_of, launcher_of
from flydsl.compiler.user_error import user_facing
from flydsl.dialect.context import lock
from flydsl.dialect.location import argument_error
from flydsl.errors import ArgumentError
from flydsl.errors.missing_attributes import Explained
from flydsl.expr.numeric import numeric_class
from flydsl.printing import FORMATS, HOST_FORMATS
from flydsl.runtime import device as devices
from flydsl.runtime.argument_slots import TooLarge
from flydsl.runtime.host import HostProgram
from flydsl.runtime.interface import Device, Dim3
from flydsl.system.garbage import collection_paused

if TYPE_CHECKING:
    from flydsl.compiler.caching.dependencies import Dependencies
    from flydsl.compiler.pipeline import Pipeline
    from flydsl.hsaco.variables import Variables
    from flydsl.simulator import Simulation


class CompiledArtifact(Explained):
    """A compiled launcher. Call it with the arguments that the launcher takes.

    code: the code object with its texts. pipeline: every stage that led to it. dependencies: the surroundings that the
    launcher was compiled with, where a launcher has made it.
    """

    dependencies: Dependencies

    elsewhere: ClassVar[Mapping[str, str]] = {
        **{name: f"it is .kernels[0].{name}" for name in ("resources", "occupancy")},
        **{name: f"it is .pipeline.{name}" for name in ("stages", "operations")},
    }

    def __init__(self, pipeline: Pipeline, code: CodeObject) -> None:
        self.pipeline = pipeline
        self.code = replace(code, dynamic_lds=tuple((k.name, k.dynamic_lds_bytes) for k in pipeline.traced.kernels))
        parameters = enumerate(zip(pipeline.arguments, pipeline.signature.parameters, strict=True))
        self._runtime = [(i, argument, p.name) for i, (argument, p) in parameters if not argument.is_constant]
        self._programs: dict[Device, HostProgram] = {}
        self._place = next((argument.device for argument in pipeline.arguments if argument.device is not None), "cpu")

    @property
    def isa(self) -> str:
        """The assembly, with the user's lines as comments."""
        return self.code.isa

    def mnemonics(self, *prefixes: str) -> list[str]:
        """The names of the machine instructions, in order; with prefixes such as "v_mfma" those that begin so."""
        return self.code.mnemonics(*prefixes)

    @property
    def hsaco(self) -> bytes:
        """The code object as the device loads it."""
        return self.code.hsaco

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, each with `.resources` and `.occupancy`."""
        return self.code.kernels

    @property
    def codes(self) -> list[str]:
        """The struct codes of the compiled launcher's parameters."""
        arguments = [*self.pipeline.arguments, *([STREAM] if self.pipeline.traced.extra_stream else [])]
        return [code for argument in arguments for code in argument.codes()]

    @property
    def ir(self) -> str:
        """The MLIR after the last stage."""
        return self.pipeline.text_after(len(self.pipeline))

    @property
    def source_ir(self) -> str:
        """The MLIR as traced."""
        return self.pipeline.origin

    def print_ir(self, compiled: bool = True) -> None:
        """Print the MLIR after the last stage, or as traced."""
        print(self.ir if compiled else self.source_ir)

    dump = print_ir

    @user_facing
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launch. Raises ArgumentError for arguments that this artifact was not compiled for."""
        payloads, place = self._payloads(args, kwargs)
        self._run(payloads, devices.current_device(place))

    @cached_property
    def _adapt(self) -> AdaptAll:
        return adapter(self.pipeline.signature.parameters)

    def _payloads(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sequence[Any], str]:
        """The payloads of a call's arguments, and the place of its tensors."""
        signature = self.pipeline.signature
        arguments, payloads = self._adapt(self._with_memory_of_addresses(signature.bind(args, kwargs)))
        if arguments == self.pipeline.arguments:
            return payloads, self._place
        for parameter, argument, expected in zip(signature.parameters, arguments, self.pipeline.arguments, strict=True):
            if not expected.takes(argument):
                raise argument_error(
                    f"{parameter.name}: this was compiled for {expected.describe()}, got {argument.describe()}",
                    f"call {signature.name}, which compiles for what it gets",
                )
        return payloads, tensor_place(signature, arguments)

    def launch_payloads(self, payloads: Sequence[Any], device: Device | None = None) -> None:
        """Launch with payloads of the arguments in parameter order (`jit_argument.adapt`).

        device: by default that of the tensors.
        """
        self._run(payloads, device or devices.current_device(self._place))

    def _with_memory_of_addresses(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values, with memory of the compiled element type in place of each integer that is an address."""
        addresses = [i for i in self._pointers if type(values[i]) is int]
        if not addresses:
            return values
        memories = list(values)
        for i in addresses:
            expected = self._pointers[i]
            memories[i] = from_c_void_p(numeric_class(expected.element), values[i], assumed_align=expected.align)
        return memories

    @cached_property
    def _pointers(self) -> dict[int, PointerArgument]:
        return {i: given for i, given in enumerate(self.pipeline.arguments) if isinstance(given, PointerArgument)}

    @user_facing
    def simulate(self, *args: Any, workgroup: Dim3 = (0, 0, 0), **kwargs: Any) -> Simulation:
        """Do what `__call__` does, on the simulator, instruction by instruction. It stops before the first instruction.

        workgroup: which workgroup of every kernel runs in single steps. Raises ArgumentError for tensors that are not
        on the CPU, LaunchError for a workgroup that no grid has.
        """
        return self._simulation(*self._payloads(args, kwargs), workgroup)

    def simulate_payloads(
        self, payloads: Sequence[Any], workgroup: Dim3, described: Callable[[], Variables] | None = None
    ) -> Simulation:
        """`simulate` with payloads of the arguments in parameter order (`jit_argument.adapt`).

        described: finds the variables of the source in the kernels.
        """
        return self._simulation(payloads, self._place, workgroup, described)

    def _simulation(
        self,
        payloads: Sequence[Any],
        place: str,
        workgroup: Dim3,
        described: Callable[[], Variables] | None = None,
    ) -> Simulation:
        from flydsl.runtime.simulated import recording_device
        from flydsl.simulator import Simulation

        if place != "cpu":
            raise argument_error(
                f"{self.pipeline.name}: the tensors are on {place}, but the simulator takes CPU tensors",
                "move them with .cpu()",
            )
        session = self._run(payloads, recording_device())
        return Simulation(
            session.launches,
            workgroup,
            keep_alive=payloads,
            after_kernel=session.after_kernel,
            traced_module=lambda: self.pipeline.origin,
            described=described,
        )

    def _run(self, payloads: Sequence[Any], device: Device) -> Any:
        """Run the launcher on a device and return the session of the call."""
        program = self._programs.get(device) or self._host_program(device)
        with program.lock:
            session = device.session()
            try:
                program.run(self._values(payloads, device, session), session)
            except TooLarge:
                raise self._too_large(payloads) from None
        return session

    def _too_large(self, payloads: Sequence[Any]) -> ArgumentError:
        """The error of a number that cannot be passed as the parameter says: a size, mostly."""
        for i, argument, name in self._runtime:
            if isinstance(argument, TensorArgument):
                for dimension, size in enumerate(payloads[i].shape):
                    if size >= 1 << 31:
                        return argument_error(
                            f"{name}: dimension {dimension} must have at most {(1 << 31) - 1} elements, a 32-bit size, "
                            f"got {size}",
                            f"give it as several dimensions, such as {name}.view(-1, 1024), or pass its address: "
                            "annotate the parameter fx.Pointer",
                        )
        return argument_error(
            f"{self.pipeline.name}: a number is too large for the type in which it is passed",
            "annotate its parameter with a wider type",
        )

    def _values(self, payloads: Sequence[Any], device: Device, session: Any) -> list[Any]:
        """The compiled function's arguments, flattened: addresses, sizes, strides, scalars, streams."""
        values: list[Any] = []
        for i, argument, name in self._runtime:
            values += argument.flat(name, payloads[i], device, session)
        if self.pipeline.traced.extra_stream:
            values.append(device.stream_handle(None))
        return values

    @collection_paused()
    def _host_program(self, device: Device) -> HostProgram:
        """The launcher for a device, made when first needed."""
        traced = self.pipeline.traced
        sites = {record.name: record.at for record in traced.kernels}
        with lock:
            if device not in self._programs:
                printed, printed_by_host = (formats_of(traced.module, name) for name in (FORMATS, HOST_FORMATS))
                codes = [*self.codes, "q"] if printed else self.codes
                launcher = launcher_of(traced.module, traced.entry, codes)
                self._programs[device] = HostProgram(launcher, device, self.code, sites, printed, printed_by_host)
        return self._programs[device]

    def __repr__(self) -> str:
        names = ", ".join(kernel.name for kernel in self.kernels)
        return f"<CompiledArtifact {self.pipeline.name} for {self.code.arch.name}: {names}>"
