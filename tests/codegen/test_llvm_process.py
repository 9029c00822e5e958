"""LLVM's own process: it serves any number of compilations, and what ends there does not end the user's process."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any, NoReturn

import pytest

from flydsl.codegen import llvm_process
from flydsl.codegen.isolate import ProcessEndedError
from flydsl.codegen.llvm_process import Job
from flydsl.codegen.llvm_worker import Request
from tests.codegen.conftest import LOOP_WITH_LINES, VECTOR_ADD

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NO_INSTRUCTION = "define amdgpu_kernel void @k() {\n  call void @llvm.amdgcn.s.barrier.signal(i32 -1)\n  ret void\n}\n"
NO_INSTRUCTION += "declare void @llvm.amdgcn.s.barrier.signal(i32)\n"
# Takes LLVM a minute or more.
LONG = "define amdgpu_kernel void @k(ptr addrspace(1) %p) {{\n  %v0 = load volatile float, ptr addrspace(1) %p\n{}\n}}"
LINES = (
    f"  %l{i} = load volatile float, ptr addrspace(1) %p\n  %v{i} = frem float %l{i}, %v{i - 1}"
    for i in range(1, 20_000)
)


def request(**changes: Any) -> Request:
    """For a vector addition, with these changes."""
    return Request(**{"llvm_ir": VECTOR_ADD, "cpu": "gfx942", "opt_level": 2, **changes})


def test_compilations_run_side_by_side() -> None:
    jobs = [Job(request()) for _ in range(3)]
    results = [job.result() for job in jobs]
    assert all(result == results[0] for result in results)
    assert "vector_add" in results[0][0][1]


@pytest.mark.parametrize("cpu", ["gfx942", "gfx1201"])  # whose clauses have LLVM write another listing
def test_a_warning_comes_once(cpu: str) -> None:
    waves = LOOP_WITH_LINES.replace('"256,256" }', '"256,256" "amdgpu-waves-per-eu"="8,8" }')
    _, warning = Job(request(llvm_ir=waves.replace("256 x float", "9999 x float"), cpu=cpu)).result()
    assert warning.count("failed to meet occupancy target") == 1


def test_the_end_of_a_compilation_is_an_error_and_the_next_one_works() -> None:
    with pytest.raises(ProcessEndedError, match="Invalid opcode"):
        Job(request(llvm_ir=NO_INSTRUCTION)).result()
    assert not isinstance(Job(request()).result()[0], str)


def test_a_refusal_is_a_text() -> None:
    refused, _ = Job(request(llvm_ir="define void @f() { unknown }")).result()
    assert isinstance(refused, str)
    assert "expected instruction opcode" in refused


def test_a_process_that_somebody_has_ended_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    monkeypatch.setattr(llvm_process, "_requests", ours)
    assert not isinstance(Job(request()).result()[0], str)


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_interrupt_ends_the_compilation() -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    job = Job(request(llvm_ir=LONG.format("\n".join((*LINES, "  ret void")))))
    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            job.result()
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert job.pid is not None
    deadline = time.monotonic() + 20
    while is_there(job.pid):
        assert time.monotonic() < deadline


def test_no_process_is_left_behind() -> None:
    """A program may wait for all of its children; and its end is that of LLVM's process, which holds its stderr."""
    script = """
        import os
        from flydsl.arch import get_arch
        from flydsl.codegen import compile_llvm_ir
        from tests.codegen.conftest import LOOP_WITH_LINES, VECTOR_ADD

        compile_llvm_ir(VECTOR_ADD, get_arch("gfx942"))
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no child is left")
        if os.fork() == 0:  # which may compile, too
            print(len(compile_llvm_ir(VECTOR_ADD, get_arch("gfx950")).hsaco) > 0, flush=True)
            os._exit(0)
        os.wait()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        env=os.environ | {"FLYDSL_RUNTIME_ENABLE_CACHE": "0", "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["no child is left", "True"]
    assert done.stderr == ""


def test_a_machine_that_is_ready_compiles_the_same() -> None:
    """Its own GPU, and what it has met before makes no difference."""
    script = """
        from flydsl.codegen import llvm_functions, llvm_process, llvm_worker
        from tests.codegen.test_llvm_process import LOOP_WITH_LINES, request

        llvm_functions.load(str(llvm_process.llvm_library()))
        requests = [request(), request(llvm_ir=LOOP_WITH_LINES), request(cpu="gfx1201"), request(opt_level=0)]
        unprepared = [llvm_worker.compiled(each) for each in requests]
        for opt_level in (0, 2):
            llvm_worker._get_ready("gfx942", opt_level)
        assert len(llvm_worker._machines) == 2
        print(all(llvm_worker.compiled(r) == made for r, made in [*zip(requests, unprepared)] * 2))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout.split() == ["True"]


def test_a_process_leaves_no_open_socket_behind(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from flydsl.codegen import llvm_process\nllvm_process.start()\n")
    done = subprocess.run([sys.executable, "-X", "dev", str(program)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "ResourceWarning: unclosed <socket" not in done.stderr


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def test_a_job_that_is_given_up_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector would close it, and there Python loses a Ctrl-C without a word."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        Job(request()).end()
        monkeypatch.setattr(llvm_process.marshal, "dump", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            Job(request())
        gc.collect()
    assert not [warning for warning in caught if "unclosed" in str(warning.message)]
