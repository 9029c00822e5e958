#!/usr/bin/env bash
# Make the environment ready: .venv in this checkout, or the environment of the interpreter that is the argument.
# A second run with the same pyproject.toml does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "setup: $*" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

find_python() {
    local name
    for name in python3 python3.13 python3.12 python3.11 python3.10; do
        if new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    fail "needs Python 3.10 or newer; python3 is $(python3 --version 2>&1 || true)." \
        "Install one, or name it: make lab PYTHON=/path/to/python"
}

make_venv() {
    local python version
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then # Debian and Ubuntu package it apart
        version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null ||
            fail "$python has no venv module. On Debian or Ubuntu: sudo apt-get install $version-venv"
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$version-venv"
    fi
    echo "setup: making .venv with $("$python" --version)"
    "$python" -m venv .venv
}

installed() {
    "$1" -c 'import sys
from importlib.util import find_spec
sys.exit(not all(map(find_spec, ("flydsl", "torch", "mlir", "llvmlite", "jupyterlab", "pytest"))))' 2>/dev/null
}

torch_version() {
    "$1" -c 'from importlib.metadata import version; print(version("torch"))' 2>/dev/null
}

install() {
    local python=$1 torch
    torch=$(torch_version "$python") || "$python" -m pip install torch==2.13.0
    torch=${torch:-2.13.0}
    # The constraint keeps pip from replacing a torch that was there, such as a ROCm build.
    "$python" -m pip install --constraint <(echo "torch==$torch") --editable '.[dev]'
}

if [[ $# -gt 0 ]]; then
    python=$1
    new_enough "$python" || fail "$python is not Python 3.10 or newer: $("$python" --version 2>&1 || true)"
else
    python=.venv/bin/python
    new_enough "$python" || make_venv
fi

stamp=build/setup-$(echo "$python" | cksum | cut -d' ' -f1)
wanted=$(cksum <pyproject.toml)
if [[ $(cat "$stamp" 2>/dev/null) != "$wanted" ]] || ! installed "$python"; then
    install "$python"
    mkdir -p build
    echo "$wanted" >"$stamp"
fi
