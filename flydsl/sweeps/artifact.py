"""The choice of an autotuned launcher as a file that other processes read, in the form of FlyDSL's.

One file holds the choice for a launcher's name, the values of its key, and a device: `<name>-<digest>.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flydsl import env
from flydsl.arch.products import is_sold, product_of
from flydsl.errors import ArgumentError
from flydsl.sweeps.config import Config

_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Artifact:
    """The file of a choice. identity: the launcher's name, the values of its key, and the device."""

    path: Path
    identity: Mapping[str, Any]

    def load(self) -> Config | None:
        """The choice; None where there is no file. A file that is not such a choice is passed over with a warning."""
        if not self.path.is_file():
            return None
        try:
            return self._read()
        except (OSError, ValueError) as error:
            warnings.warn(f"{self.path}: {error}, so the configuration is chosen anew", stacklevel=3)
            return None

    def _read(self) -> Config:
        """The file's choice. Raises ValueError for a file of something else."""
        found = json.loads(self.path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            raise ValueError(f"it is not of version {_VERSION}")
        if _canonical(found.get("identity")) != _canonical(self.identity):
            raise ValueError("it is of another launcher, key or device")
        if not isinstance(found.get("config"), dict) or "pre_hook" in found["config"]:
            raise ValueError("it has no configuration of names and values")
        return Config.from_dict(found["config"])

    def store(self, config: Config) -> None:
        """Write the choice, in one step. Raises ArgumentError for one that JSON does not hold."""
        values = config.to_dict()
        if config.pre_hook is not None or not _survives(values):
            raise ArgumentError(
                f"{config!r} does not fit into {self.path.name}",
                hint="use a configuration of numbers and strings, without pre_hook",
            )
        record = {"version": _VERSION, "identity": dict(self.identity), "config": values}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self.path.parent, delete=False) as file:
            file.write(json.dumps(record, indent=2, sort_keys=True, allow_nan=False) + "\n")
        os.replace(file.name, self.path)


def check_name(name: str) -> str:
    """The name of a launcher's files. Raises ArgumentError for what is none of a file."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not name.strip("._-"):
        raise ArgumentError(f"artifact_name={name!r}", hint="use 1 to 64 letters, digits, dots, dashes and underscores")
    return name


def artifact_of(name: str | None, key: Mapping[str, Any], arch: str, device: Any) -> Artifact | None:
    """The file of a choice; None without a name, or where FLYDSL_AUTOTUNE_CONFIG_DIR is not set.

    key: values by the names of parameters. arch: of the tensors' device. device: the tensors' torch device, or None.
    Raises ArgumentError for a key that JSON does not hold.
    """
    folder = env.autotune_config_dir()
    if name is None or folder is None:
        return None
    identity = {"name": name, "key": dict(key), "device": _described(arch, device)}
    try:
        digest = hashlib.sha256(_canonical(identity).encode()).hexdigest()
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"autotune: the key {dict(key)} does not fit into a file: {error}",
            hint="use numbers and strings in the key",
        ) from error
    return Artifact(folder / f"{name}-{digest}.json", identity)


def _described(arch: str, device: Any) -> dict[str, Any]:
    """The device as FlyDSL's files name it; the simulator is the product that it simulates."""
    if device is not None and device.type == "cuda":
        import torch

        found = torch.cuda.get_device_properties(device)
        return {"name": str(found.name), "arch": arch, "compute_units": found.multi_processor_count}
    if not is_sold(arch):
        return {"name": arch, "arch": arch, "compute_units": None}
    product = product_of(arch)
    return {"name": product.name, "arch": arch, "compute_units": product.multiprocessors}


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _survives(values: Any) -> bool:
    """True for values that JSON gives back as they are."""
    try:
        return bool(json.loads(_canonical(values)) == values)
    except (TypeError, ValueError):
        return False
