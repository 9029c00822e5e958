"""JupyterLab's debugger, by its protocol: a breakpoint in a cell's kernel stops there, and names show all lanes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

jupyter_client = pytest.importorskip("jupyter_client")

pytestmark = [pytest.mark.slow, pytest.mark.sweep]

CELL = """\
import torch, flydsl, flydsl.compiler as flyc, flydsl.expr as fx

@flyc.kernel
def double_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.thread_idx.x
    x = a[i]
    if i < 3:
        x = x * 2.0
    out[i] = x

@flyc.jit
def double(a: fx.Tensor, out: fx.Tensor):
    double_kernel(a, out).launch(grid=1, block=8)

out = torch.zeros(8)
with flydsl.interpreting():
    double(torch.arange(8.0), out)
print(out.tolist())
"""
IN_THE_BRANCH = 8


class Debugger:
    """A client of a notebook's kernel that speaks its debug protocol, as JupyterLab does."""

    def __init__(self, client: Any) -> None:
        self.client, self.sent, self.printed = client, 0, ""

    def ask(self, command: str, **arguments: Any) -> Any:
        """The body of the answer to a request."""
        self.sent += 1
        content = {"type": "request", "seq": self.sent, "command": command, "arguments": arguments}
        message = self.client.session.msg("debug_request", content)
        self.client.control_channel.send(message)
        while True:
            answer = self.client.get_control_msg(timeout=120)
            if answer["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return answer["content"].get("body", {})

    def wait_for_stop(self) -> tuple[int, dict[str, Any]]:
        """The thread that has stopped, and its innermost frame."""
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            if message["msg_type"] == "debug_event" and message["content"].get("event") == "stopped":
                thread = message["content"]["body"]["threadId"]
                return thread, self.ask("stackTrace", threadId=thread)["stackFrames"][0]

    def evaluate(self, expression: str, frame: dict[str, Any]) -> str:
        return str(self.ask("evaluate", expression=expression, frameId=frame["id"], context="watch")["result"])

    def run_to_the_end(self, execution: str) -> None:
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") == execution:
                self.printed += message["content"].get("text", "")
                if message["content"].get("execution_state") == "idle":
                    return


@pytest.fixture
def debugger() -> Iterator[Debugger]:
    manager, client = jupyter_client.manager.start_new_kernel(kernel_name="python3", startup_timeout=120)
    try:
        made = Debugger(client)
        made.ask(
            "initialize", clientID="test", adapterID="", linesStartAt1=True, columnsStartAt1=True, pathFormat="path"
        )
        made.ask("attach")
        yield made
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_stops_in_a_branch_with_its_lanes(debugger):
    path = debugger.ask("dumpCell", code=CELL)["sourcePath"]
    debugger.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": IN_THE_BRANCH}], sourceModified=False)
    debugger.ask("configurationDone")
    execution = debugger.client.execute(CELL)
    thread, frame = debugger.wait_for_stop()
    assert (frame["name"], frame["line"]) == ("double_kernel", IN_THE_BRANCH)
    assert "Float32 in 8 lanes, 3 of them active\n     0: 0  1  2  ·" in debugger.evaluate("x", frame)
    assert debugger.evaluate("float(x.lanes.max())", frame) == "7.0"
    debugger.ask("next", threadId=thread)
    thread, frame = debugger.wait_for_stop()
    assert frame["name"] == "double_kernel"
    assert "     0: 0  2  4  ·" in debugger.evaluate("x", frame)
    debugger.ask("continue", threadId=thread)
    debugger.run_to_the_end(execution)
    assert debugger.printed == "[0.0, 2.0, 4.0, 3.0, 4.0, 5.0, 6.0, 7.0]\n"
