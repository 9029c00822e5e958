"""The pipeline of one compilation: stage after stage, with a record of each.

    p = launch.lower(A, B, C)          # nothing has run yet
    p.step(); p.run(until="fly-layout-lowering"); p.run()
    p["fly-layout-lowering"].diff
    p.artifact

A pipeline made by `lower` keeps a copy of the module after each stage (under a millisecond for thousands of operations)
and makes text on demand. The pipeline of an ordinary launch keeps only the traced module; it runs stages again on a
copy if you ask for their results.
"""

from __future__ import annotations

import difflib
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from mlir import ir

from flydsl import env
from flydsl.arch import Arch
from flydsl.codegen import CodeObject
from flydsl.compiler.arguments.argument import Argument
from flydsl.compiler.lowering.compilation import Compilation
from flydsl.compiler.lowering.observers import observers_from_environment
from flydsl.compiler.lowering.written_operation import WrittenOperation, written_operations
from flydsl.compiler.stages import PassesFailedError, StageSpec, matching, number_of, stages
from flydsl.compiler.trace import Traced
from flydsl.dialect.context import context, lock
from flydsl.dialect.ops import define_all
from flydsl.dialect.text import to_text
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError, FlyError
from flydsl.errors.missing_attributes import Explained
from flydsl.expr.control_flow.variables import names_are_kept
from flydsl.progress import Task

if TYPE_CHECKING:
    from flydsl.compiler.artifact import CompiledArtifact


# Up to this many traced operations, each of MLIR's passes takes less than a second.
LARGE_MODULE_OPS = 10_000


class Stage(Explained):
    """One stage of a pipeline and its effect.

    state: "pending", "done" or "failed". time_ms: how long it ran. error: why it failed.
    """

    def __init__(self, pipeline: Pipeline, index: int, spec: StageSpec) -> None:
        self._pipeline = pipeline
        self.spec = spec
        self.index = index
        self.state = "pending"
        self.time_ms: float | None = None
        self.error: FlyError | None = None

    @property
    def name(self) -> str:
        """The name in the syntax of pass pipelines, with options."""
        return self.spec.name

    @property
    def passes(self) -> tuple[str, ...]:
        """The names of the passes, without options."""
        return self.spec.passes

    @property
    def phase(self) -> str:
        """The phase. A: fly to ROCDL; B: to LLVM; C: machine code."""
        return self.spec.phase

    @property
    def summary(self) -> str:
        """The purpose of the stage, in a few words."""
        return self.spec.summary

    @property
    def file_name(self) -> str:
        """The name of its dump file, without directory."""
        return f"{self.index:02d}_{self.spec.file_name}.mlir"

    @property
    def before(self) -> str:
        """The module before this stage. Raises CompileError if the pipeline has not reached it."""
        return self._pipeline.text_after(self.index - 1)

    @property
    def after(self) -> str:
        """The module after this stage. Raises CompileError for a stage that has not run, or failed."""
        return self._pipeline.text_after(self.index)

    @property
    def diff(self) -> str:
        """The unified diff from before to after; empty if the stage changed nothing."""
        return "\n".join(
            difflib.unified_diff(
                self.before.splitlines(), self.after.splitlines(), "before", f"after {self.name}", lineterm=""
            )
        )

    @property
    def changed(self) -> bool:
        """True if the stage changed the module's text."""
        return self.before != self.after

    @property
    def ops_before(self) -> int:
        """Number of operations before the stage."""
        return self._pipeline.ops_after(self.index - 1)

    @property
    def ops_after(self) -> int:
        """Number of operations after the stage."""
        return self._pipeline.ops_after(self.index)

    def run(self, compilation: Compilation) -> None:
        """Run on a compilation; see `StageSpec.run`."""
        self.spec.run(compilation)

    def __repr__(self) -> str:
        time = "" if self.time_ms is None else f", {self.time_ms:.2f} ms"
        return f"<Stage {self.index} {self.name}: {self.state}{time}>"


class Pipeline(Explained):
    """The stages of one compilation. Index it by number or name; iterate it for the stages.

    observers: objects that are told of its progress; initially those that the environment asks for.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        **{name: f"it is .artifact.{name}" for name in ("isa", "hsaco", "kernels", "code", "mnemonics", "simulate")},
        **{name: f"it is .artifact.kernels[0].{name}" for name in ("resources", "occupancy")},
        **{name: f"it is one stage's, as in p[3].{name}" for name in ("diff", "before", "after", "time_ms")},
    }

    def __init__(
        self,
        name: str,
        traced: Traced,
        arch: Arch,
        arguments: tuple[Argument, ...],
        signature: Any,
        *,
        keep_snapshots: bool = False,
        meanwhile: Callable[[], None] = lambda: None,
        specs: Sequence[StageSpec] | None = None,
    ) -> None:
        """meanwhile: is called while LLVM compiles in another process. specs: by default the usual stages."""
        self.name = name
        self.arch = arch
        self.arguments = arguments
        self.signature = signature
        with lock, context():
            self.stages = [Stage(self, i + 1, spec) for i, spec in enumerate(specs or stages(arch))]
            # Passes rewrite a copy. The user's program may have kept operations and values of the one that it built,
            # which would point to freed memory.
            self._snapshots: list[ir.Operation] = [traced.module.operation]
            self.traced = replace(traced, module=_copy(traced.module))
        self._compilation = Compilation(
            self.traced.module.operation,
            arch,
            env.opt_level(),
            traced.hints.debug_info or env.debug_info(),
            is_large=traced.operations > LARGE_MODULE_OPS,
            llvm_options=traced.hints.llvm_options,
            libraries=traced.libraries,
            meanwhile=meanwhile,
        )
        self._bytecode: bytes | None = None  # of the traced module, where no snapshot has been made of it yet
        self._keep_snapshots = keep_snapshots
        self._digests: list[bytes] = []  # by stage like the snapshots
        self._texts: dict[tuple[int, bool], str] = {}
        self._op_counts: dict[int, int] = {}
        self._verifies = env.flag("FLYDSL_DEBUG_ENABLE_VERIFIER", True)
        self.observers = [] if names_are_kept() else observers_from_environment()  # they have seen this launcher
        for observer in self.observers:
            observer.started(self)

    @classmethod
    def that_has_run(
        cls,
        name: str,
        traced: Traced,
        arch: Arch,
        arguments: tuple[Argument, ...],
        signature: Any,
        *,
        origin: bytes,
        code: CodeObject,
        times_ms: Sequence[float],
    ) -> Pipeline:
        """A pipeline that another process has run. Its stages show what they did by running again.

        traced: with the module after the last stage. origin: the module as traced, as bytecode. times_ms: of each
        stage. Raises ValueError if the stages are others now.
        """
        made = cls(name, traced, arch, arguments, signature)
        made.observers, made._snapshots, made._bytecode = [], [], origin
        made._compilation.code = code
        for stage, time_ms in zip(made.stages, times_ms, strict=True):
            stage.time_ms, stage.state = time_ms, "done"
        return made

    # --- running -----------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The number of stages that have run."""
        return sum(stage.state == "done" for stage in self.stages)

    @property
    def module(self) -> ir.Operation:
        """The module after the last stage that ran, which the next one changes."""
        return self._compilation.module

    @property
    def finished(self) -> bool:
        """True if every stage has run."""
        return self.position == len(self.stages)

    def step(self) -> Stage:
        """Run the next stage. Raises CompileError if it fails, or if none is left."""
        __tracebackhide__ = True
        if self.finished:
            raise CompileError(f"{self.name}: every stage has run", hint="start again with .lower(...)")
        stage = self.stages[self.position]
        if stage.state == "failed":
            raise stage.error or CompileError(f"{self.name}: stage {stage.index} did not come to its end")
        self._run(stage)
        for observer in self.observers:
            observer.stage_done(self, stage)
            if self.finished:
                observer.ended(self)
        return stage

    def run(self, until: str | int | None = None) -> Pipeline:
        """Run the remaining stages, or those up to and including `until` (a name or a number)."""
        __tracebackhide__ = True
        last = len(self.stages) if until is None else self._pending(until)
        if self.position < last:
            with Task(f"compiling {self.name}", last, "stages", done=lambda: self.position, detail=self._present):
                while self.position < last:
                    self.step()
        return self

    def _present(self) -> str:
        """The present activity, in words."""
        stage = next((stage for stage in self.stages if stage.state == "failed"), None)  # until it is done
        return "" if stage is None else f"in {stage.index} {stage.passes[0]}"

    def _pending(self, until: str | int) -> int:
        """The number of the next stage of that name; if none is left, of the last one that ran."""
        found = matching(self._specs, until)
        return next((number for number in found if self.stages[number - 1].state != "done"), found[-1])

    @property
    def _specs(self) -> list[StageSpec]:
        return [stage.spec for stage in self.stages]

    def _run(self, stage: Stage) -> None:
        __tracebackhide__ = True
        start = perf_counter()
        stage.state = "failed"  # which it stays if anything is raised: the module may be half rewritten
        try:
            with lock, context(), ir.Location.unknown():
                stage.run(self._compilation)
                if self._verifies and not stage.spec.is_verified:
                    self._compilation.module.verify()
                if self._keep_snapshots:
                    self._snapshots.append(self._compilation.module.clone())
        except (FlyError, ir.MLIRError) as error:
            stage.error = _stage_error(stage, error)
            for observer in self.observers:
                observer.ended(self)
            raise stage.error from None
        except KeyboardInterrupt:
            place = f"stage {stage.index} {stage.passes[0]} of {len(self.stages)} stages"
            raise KeyboardInterrupt(f"{self.name}: in {place}") from None
        except Exception as error:  # a pass that is wrong: the call has its traceback, the stage keeps its message
            stage.error = CompileError(f"stage {stage.index} {stage.passes[0]}: {type(error).__name__}: {error}")
            raise
        stage.time_ms = (perf_counter() - start) * 1e3
        stage.state = "done"

    @property
    def artifact(self) -> CompiledArtifact:
        """The compiled launcher. Runs the remaining stages."""
        self.run()
        return self._artifact

    @cached_property
    def _artifact(self) -> CompiledArtifact:
        from flydsl.compiler.artifact import CompiledArtifact

        assert self._compilation.code is not None
        return CompiledArtifact(self, self._compilation.code)

    @property
    def origin_bytecode(self) -> bytes:
        """The module as traced, with locations, as bytecode of MLIR."""
        if self._bytecode is None:
            with lock:
                self._bytecode = bytecode(self._snapshots[0])
        return self._bytecode

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def origin(self) -> str:
        """The module as traced."""
        return self.text_after(0)

    def current_text(self) -> str:
        """The module after the last stage that ran, printed anew."""
        return to_text(self._compilation.module)

    def text_after(self, index: int, *, locations: bool = False) -> str:
        """The module after stage `index`, 0 for the traced one."""
        with lock:
            index = self._last_change(index)
            if (index, locations) not in self._texts:
                self._texts[index, locations] = to_text(self._module_after(index), locations=locations)
            return self._texts[index, locations]

    def operations(self, name: str, *, after: int | str = 0) -> list[WrittenOperation]:
        """The operations whose name contains `name`, such as "logical_divide", with their text and types.

        after: a stage, by number or name; by default the program as it was traced. Raises CompileError for a stage
        that has not run.
        """
        index = number_of(self._specs, after) if after else 0
        with lock, context():
            return written_operations(self._module_after(index), name)

    def ops_after(self, index: int) -> int:
        """The number of operations in the module after stage `index`."""
        with lock:
            index = self._last_change(index)
            if index not in self._op_counts:
                self._op_counts[index] = 1 + len(operations(self._module_after(index)))
            return self._op_counts[index]

    def _last_change(self, index: int) -> int:
        """The last stage up to `index` that changed the module; comparing bytecode is far quicker than printing."""
        self._module_after(index)
        while len(self._digests) <= index:
            self._digests.append(_digest(self._snapshots[len(self._digests)]))
        while index > 0 and self._digests[index] == self._digests[index - 1]:
            index -= 1
        return index

    def _module_after(self, index: int) -> ir.Operation:
        """The module after a stage, by running the stage again. It is kept, so each stage runs again at most once.

        The caller holds `lock`.
        """
        if index > 0 and self.stages[index - 1].state != "done":
            stage = self.stages[index - 1]
            raise CompileError(
                f"stage {stage.name} has {'failed' if stage.error else 'not run yet'}",
                hint=".error of the stage says why" if stage.error else ".run(until=...) of the pipeline runs it",
            )
        if not self._snapshots:
            assert self._bytecode is not None
            self._snapshots.append(self._traced_module(self._bytecode))
        while len(self._snapshots) <= index:
            stage = self.stages[len(self._snapshots) - 1]
            again = replace(self._compilation, module=self._snapshots[-1].clone())
            with context(), ir.Location.unknown():
                stage.run(again)
            self._snapshots.append(again.module)
        return self._snapshots[index]

    def _traced_module(self, origin: bytes) -> ir.Operation:
        """The module as traced. CompileError for an artifact's file in which it is damaged."""
        define_all()  # this process may not have traced such operations
        try:
            with context():
                return ir.Module.parse(origin).operation
        except ir.MLIRError as error:
            raise CompileError(
                f"{self.name}: the module as traced, which was saved with this artifact, is damaged: "
                f"{str(error).splitlines()[0]}",
                hint="its machine code is another part and can be launched; compile it again to look at its stages",
            ) from None

    def __getitem__(self, key: int | str) -> Stage:
        return self.stages[number_of(self._specs, key) - 1]

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __repr__(self) -> str:
        lines = [f"Pipeline {self.name} for {self.arch.name}: {self.position} of {len(self)} stages done"]
        lines.append(f"{'#':>2}  {'stage':46} phase  {'state':8} {'ms':>7}  ops")
        for stage in self.stages:
            time = "" if stage.time_ms is None else f"{stage.time_ms:.2f}"
            ops = f"{stage.ops_before} -> {stage.ops_after}" if stage.state == "done" else ""
            name = ", ".join(stage.passes)
            shown = name if len(name) <= 46 else name[:43] + "..."
            lines.append(f"{stage.index:>2}  {shown:46} {stage.phase:5}  {stage.state:8} {time:>7}  {ops}".rstrip())
        return "\n".join(lines)


def bytecode(module: ir.Operation) -> bytes:
    """A module as bytecode of MLIR, locations included."""
    written = io.BytesIO()
    module.write_bytecode(written)
    return written.getvalue()


def _digest(module: ir.Operation) -> bytes:
    return hashlib.sha256(bytecode(module)).digest()


def _stage_error(stage: Stage, error: FlyError | ir.MLIRError) -> FlyError:
    """The error of a failed stage, with the stage's name and, from MLIR's diagnostics, the user's line."""
    if isinstance(error, ir.MLIRError):
        error = PassesFailedError.of(error)
    if isinstance(error, PassesFailedError):
        if stage.index == 1 and "does not dominate this use" in error.message:
            return CompileError(
                "a value of a runtime branch or loop is used outside of it",
                at=error.at,
                hint="a Python object such as a cache has kept it: compute it before the branch or loop, or assign it "
                "to a variable there",
            )
        return CompileError(f"stage {stage.index} {', '.join(stage.passes)} failed: {error.message}", at=error.at)
    error.message = f"stage {stage.index} {stage.passes[0]}: {error.message}"
    return error


def _copy(module: ir.Module) -> ir.Module:
    """A copy of a module, of the type that the execution engine takes, which `clone` does not return."""
    copy = ir.Module.create(module.operation.location)
    for attribute in module.operation.attributes:
        name = attribute if isinstance(attribute, str) else attribute.name
        copy.operation.attributes[name] = module.operation.attributes[name]
    for operation in module.body.operations:
        copy.body.append(operation.operation.clone())
    return copy
