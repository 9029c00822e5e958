"""A JupyterLab server for tests: on a free port of the loopback interface, with settings and files of its own."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_RUNNING_AT = re.compile(r"http://127\.0\.0\.1:(\d+)/lab")
_SETTINGS = {
    # Cells out of sight are rendered too, so that a test can look at all of them.
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": '{"windowingMode": "none"}',
    # No questions about news, and no look for updates: both go to the network.
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": (
        '{"fetchNews": "false", "checkForUpdates": false}'
    ),
}


def find_chromium() -> str | None:
    """The browser that is installed."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


class Lab:
    """A running server. folder: an empty folder for everything that it reads and writes."""

    def __init__(self, folder: Path) -> None:
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self._token = secrets.token_hex(16)
        self._log: deque[str] = deque(maxlen=50)
        for name, text in _SETTINGS.items():
            path = folder / "settings" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={self.notebooks}"),
                "--FileContentsManager.pre_save_hook=tools.lab.keep_kernel_metadata",  # as `make lab` has it
                *("--ServerApp.terminals_enabled=False", "--LabApp.expose_app_in_browser=True"),
            ],
            env=self._environment(folder),
            stderr=subprocess.PIPE,
            text=True,
        )
        self._port = self._wait_for_port()
        # What it goes on to write must be read, or it stops once the pipe is full.
        threading.Thread(target=self._log.extend, args=[self._process.stderr], daemon=True).start()

    def _environment(self, folder: Path) -> dict[str, str]:
        own = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        paths = {name: str(folder / path) for name, path in own.items()}
        return {**os.environ, **paths, "JUPYTER_TOKEN": self._token, "PYTHONPATH": str(ROOT)}

    def _wait_for_port(self) -> int:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)
            if found := _RUNNING_AT.search(line):
                return int(found[1])
        raise RuntimeError(f"JupyterLab ended before it listened:\n{''.join(self._log)}")

    def write(self, name: str, cells: list[str]) -> str:
        """A notebook of code cells that have not run. Its path on the server."""
        import nbformat  # takes seconds

        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.notebooks / name)
        return name

    @property
    def url(self) -> str:
        """Its page."""
        return f"http://127.0.0.1:{self._port}/lab?token={self._token}"

    def stop(self) -> None:
        """End the server and its kernels."""
        self._process.terminate()
        self._process.wait()
