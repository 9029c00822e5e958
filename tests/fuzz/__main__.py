"""`make fuzz`: every fuzzer, one after the other, for many trials.

A fuzzer is a module `fuzz_<what>.py` of this folder with a function `run(seed, count)`. It makes `count` trials that
depend on nothing but the seed, and raises AssertionError, whose text has what is needed to make the finding again.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

Run = Callable[[int, int], None]


def fuzzers() -> dict[str, Run]:
    """By name, such as "listings"."""
    found = sorted(Path(__file__).parent.glob("fuzz_*.py"))
    return {f.stem.removeprefix("fuzz_"): importlib.import_module(f"tests.fuzz.{f.stem}").run for f in found}


def report(name: str, run: Run, seed: int, count: int) -> bool:
    """Run one fuzzer and print what became of it. True if it found nothing."""
    start = time.perf_counter()
    try:
        run(seed, count)
    except AssertionError as finding:
        print(f"{name}: FOUND with seed {seed}, count {count}\n{finding}", flush=True)
        return False
    print(f"{name}: {count} trials with seed {seed} in {time.perf_counter() - start:.0f} s", flush=True)
    return True


def main(arguments: Sequence[str]) -> int:
    known = fuzzers()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Run fuzzers.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(known)}; by default all of them")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="by default another one every time")
    parser.add_argument("--count", type=int, default=10_000, help="trials of each")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in known:
            parser.error(f"there is no fuzzer {name!r}: it is one of {', '.join(known)}")
    names = options.names or list(known)
    findings = [name for name in names if not report(name, known[name], options.seed, options.count)]
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
