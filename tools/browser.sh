#!/usr/bin/env bash
# Make a browser ready for tests/browser. Without one those tests are skipped, so nothing here is a failure.
set -uo pipefail

skipped() {
    echo "browser: $1, so tests/browser will be skipped. On Debian or Ubuntu: sudo apt-get install chromium"
    exit 0
}

for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit
done
command -v apt-get >/dev/null || skipped "no Chromium, and no apt-get to install it with"
[[ $(id -u) == 0 ]] || skipped "no Chromium, and not root to install it"

# Where there is no network apt tries for minutes.
export DEBIAN_FRONTEND=noninteractive
options=(-q -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o DPkg::Lock::Timeout=60)
echo "browser: installing Debian's Chromium"
apt-get "${options[@]}" update >/dev/null || skipped "no Chromium, and apt-get update failed"
apt-get "${options[@]}" install -y --no-install-recommends chromium >/dev/null || skipped "apt-get could not install Chromium"
