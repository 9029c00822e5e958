#!/usr/bin/env bash
# The quick tests on every supported Python that is installed: on PATH, or by pyenv. Each has an environment of its own
# in build/pythons, which stays for the next time. Arguments: the versions to take, such as 3.10 3.13; default: all.
set -uo pipefail
cd "$(dirname "$0")/.."

interpreter() {
    local found
    for found in "$(command -v "python$1")" ~/.pyenv/versions/"$1".*/bin/python; do
        if [[ $("$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) == "$1" ]]; then
            echo "$found"
            return
        fi
    done
    return 1
}

tested=0 failed=()
[[ $# -gt 0 ]] || set -- 3.10 3.11 3.12 3.13
for version; do
    if ! python=$(interpreter "$version"); then
        echo "pythons: $version is not installed"
        continue
    fi
    environment=build/pythons/$version
    [[ -x $environment/bin/python ]] || "$python" -m venv "$environment" || exit 1
    echo "pythons: $("$python" --version)"
    make --no-print-directory fast PYTHON="$PWD/$environment/bin/python" || failed+=("$version")
    tested=$((tested + 1))
done
((tested)) || failed+=("no version was tested")
[[ ${#failed[@]} == 0 ]] || { echo "pythons: failed: ${failed[*]}" >&2; exit 1; }
