"""The cache of handlers only ever saves time: whatever happens to it, what comes out of it is what went in."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flydsl.simulator.native.cache import HandlerCache

OBJECT = bytes(range(256)) * 20
KEYS = ["a" * 64, "b" * 64]


def filled(folder: Path) -> HandlerCache:
    cache = HandlerCache(folder)
    cache.add(OBJECT, KEYS)
    return cache


def the_pack(folder: Path) -> Path:
    (pack,) = (path for path in folder.iterdir() if not path.is_symlink())
    return pack


def test_every_key_finds_the_object_in_another_process(tmp_path: Path) -> None:
    filled(tmp_path / "c")
    for key in KEYS:
        assert HandlerCache(tmp_path / "c").find(key) == (OBJECT, KEYS)
    assert HandlerCache(tmp_path / "c").find("c" * 64) is None


def test_a_truncated_or_changed_pack_is_not_used_and_is_replaced(tmp_path: Path) -> None:
    cache = filled(tmp_path / "c")
    pack = the_pack(tmp_path / "c")
    whole = pack.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole.replace(b"\x07\x08", b"\x07\x09"), b"\0" * len(whole)):
        pack.write_bytes(damaged)
        assert cache.find(KEYS[0]) is None
    cache.add(OBJECT, KEYS)
    assert cache.find(KEYS[1]) == (OBJECT, KEYS)


@pytest.mark.parametrize("target", ["../../etc/passwd", "nowhere", "d" * 64])
def test_an_entry_that_leads_elsewhere_is_not_followed(tmp_path: Path, target: str) -> None:
    cache = filled(tmp_path / "c")
    (tmp_path / "c" / KEYS[0]).unlink()
    (tmp_path / "c" / KEYS[0]).symlink_to(target)
    assert cache.find(KEYS[0]) is None
    cache.add(OBJECT, KEYS)
    assert cache.find(KEYS[0]) == (OBJECT, KEYS)


def test_an_entry_of_another_handler_is_not_used(tmp_path: Path) -> None:
    cache = filled(tmp_path / "c")
    (tmp_path / "c" / ("e" * 64)).symlink_to(the_pack(tmp_path / "c").name)
    assert cache.find("e" * 64) is None


def test_code_that_others_could_have_written_is_not_used(tmp_path: Path) -> None:
    filled(tmp_path / "c")
    the_pack(tmp_path / "c").chmod(0o666)
    assert HandlerCache(tmp_path / "c").find(KEYS[0]) is None
    the_pack(tmp_path / "c").chmod(0o600)
    assert HandlerCache(tmp_path / "c").find(KEYS[0]) is not None
    (tmp_path / "c").chmod(0o777)
    assert HandlerCache(tmp_path / "c").find(KEYS[0]) is None


def test_the_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    filled(tmp_path / "c")
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700


def test_without_a_folder_nothing_is_found_and_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = filled(tmp_path / "file")
    assert cache.find(KEYS[0]) is None


_USE = """
import sys
from pathlib import Path
from flydsl.simulator.native.cache import HandlerCache
for _ in range(200):
    cache = HandlerCache(Path(sys.argv[1]))
    cache.add(sys.argv[2].encode() * 1000, ["a" * 64, "b" * 64])
    found = cache.find("b" * 64)
    assert found is not None and found[0][:1] in (b"x", b"y") and len(set(found[0])) == 1, found
"""


@pytest.mark.slow
def test_two_processes_at_once_only_ever_see_whole_files(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    processes = [
        subprocess.Popen([sys.executable, "-c", _USE, str(tmp_path / "c"), letter], env=environment) for letter in "xy"
    ]
    assert [p.wait() for p in processes] == [0, 0]


_LAUNCH = """
import struct, sys
import numpy as np
from flydsl.simulator import Memory, Program, launch
from pathlib import Path
program = Program.load(Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]).read_text())
x, y, memory = np.arange(600, dtype="f4"), np.zeros(600, "f4"), Memory()
pointers = [memory.map_array(a, name=n) for a, n in ((x, "x"), (y, "y"))]
launch(program, "k", grid=(3, 1, 1), block=(256, 1, 1), kernarg=struct.pack("<2QI", *pointers, 600), memory=memory)
assert (y == x + x).all()
"""


@pytest.mark.slow
@pytest.mark.parametrize("state", ["cold", "warm", "damaged", "read-only", "missing"])
def test_a_launch_gives_the_same_whatever_state_the_cache_is_in(
    tmp_path: Path, compiled_double: tuple[bytes, str], state: str
) -> None:
    (tmp_path / "k.hsaco").write_bytes(compiled_double[0])
    (tmp_path / "k.s").write_text(compiled_double[1])
    folder = tmp_path / "cache"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "FLYDSL_RUNTIME_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", _LAUNCH, str(tmp_path / "k.hsaco"), str(tmp_path / "k.s")]
    if state in ("warm", "damaged"):
        subprocess.run(command, check=True, env=environment)
    packs = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    if state == "damaged":
        for pack in packs:
            pack.write_bytes(pack.read_bytes()[:-100])
    if state == "read-only":
        folder.mkdir(mode=0o500)
    if state == "missing":
        environment["FLYDSL_RUNTIME_CACHE_DIR"] = "/dev/null/nowhere"
    subprocess.run(command, check=True, env=environment)
    if state == "damaged":
        assert {p.name: p.stat().st_size for p in packs} == {
            path.name: path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
        }
        assert all(hashlib.sha256(p.read_bytes()).hexdigest() == p.name for p in packs)
