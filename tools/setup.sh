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
sys.exit(not all(map(find_spec, ("flydsl", "torch", "mlir", "llvmlite", "jupyterlab", "plotly", "pytest"))))' 2>/dev/null
}

torch_version() {
    "$1" -c 'from importlib.metadata import version; print(version("torch"))' 2>/dev/null
}

# Torch for the CPU: on Linux the one of PyPI brings 3 GB of NVIDIA's libraries, which no AMD GPU uses.
torch_index=https://download.pytorch.org/whl/cpu

reachable() {
    "$1" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$2/torch/" 2>/dev/null
}

log=build/setup.log

# pip, whose lines go to the log: shown are the large downloads, and on a terminal a count of packages. What it warns of
# is there, too. Where it fails, its last lines are the error.
run_pip() {
    local python=$1 line count=0
    shift
    if "$python" -m pip install --disable-pip-version-check --progress-bar off "$@" 2>&1 | tee -a "$log" | while read -r line; do
        case $line in
            Collecting*) count=$((count + 1)) && [[ -t 1 ]] && printf '\rsetup: %d packages found' "$count" ;;
            *Downloading*' MB)' | *'Using cached'*' MB)')
                [[ $line =~ ([A-Za-z0-9_.]+)-([0-9][^-]*)-.*\(([0-9]+)(\.[0-9]+)?\ MB\) && ${BASH_REMATCH[3]} -ge 10 ]] &&
                    say "${BASH_REMATCH[1]} ${BASH_REMATCH[2]} (${BASH_REMATCH[3]} MB)" ;;
            Installing\ collected*) say "unpacking $(($(tr -cd , <<<"$line" | wc -c) + 1)) packages" ;;
        esac
        true
    done; then
        return
    fi
    echo
    tail -n 15 "$log" >&2
    fail "pip failed; all of its output is in $log"
}

say() {
    [[ -t 1 ]] && printf '\r\033[K'
    echo "setup: $*"
}

install() {
    local python=$1 torch options=()
    mkdir -p build
    : >"$log"
    if ! torch=$(torch_version "$python"); then
        say "downloads about 0.7 GB and takes 2.5 GB on disk; 2 to 5 minutes on a fast line"
        [[ $(uname) == Linux ]] && reachable "$python" $torch_index && options=(--extra-index-url $torch_index)
        run_pip "$python" "${options[@]}" torch==2.13.0
        torch=$(torch_version "$python")
    fi
    # The constraint keeps pip from replacing a torch that was there, such as a ROCm build.
    echo "torch==$torch" >build/torch.txt
    run_pip "$python" --constraint build/torch.txt --editable '.[dev]'
    say "ready, with torch $torch: make lab opens the tour, make prints what else there is"
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
