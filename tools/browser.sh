#!/usr/bin/env bash
# Make a browser ready for tests/browser. Without one those tests are skipped, so nothing here is a failure.
set -uo pipefail

for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit
done
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "browser: no Chromium, tests/browser will be skipped. On Debian or Ubuntu: sudo apt-get install chromium"
    exit
fi
apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends chromium ||
    echo "browser: apt-get could not install chromium, tests/browser will be skipped"
