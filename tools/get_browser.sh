#!/bin/sh
# Gets a Chromium for the extraction service: one that is there, Playwright's own download, or the system's package.
# Usage: get_browser.sh BIN, the folder of the virtual environment's commands.
set -eu
bin=$1

have_browser() {
    "$bin/python" tools/find_browser.py
}

if found=$(have_browser 2>/dev/null); then
    echo "── Browser: $found"
    exit 0
fi
echo "── Getting a browser: Playwright's download of Chromium"
if "$bin/python" -m playwright install --only-shell chromium >/dev/null 2>&1 && found=$(have_browser); then
    echo "── Browser: $found"
    exit 0
fi
if command -v apt-get >/dev/null 2>&1; then
    sudo=""
    [ "$(id -u)" -eq 0 ] || sudo="sudo"
    echo "── Playwright's download is not to be had; getting the system's: apt-get install chromium-headless-shell"
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq --no-install-recommends chromium-headless-shell >/dev/null 2>&1 ||
        $sudo apt-get install -y -qq --no-install-recommends chromium >/dev/null
    if found=$(have_browser); then
        echo "── Browser: $found"
        exit 0
    fi
fi
echo "No browser could be had. Install Chromium, and put it on PATH or name it in SCRAPY_EXT_BROWSER." >&2
exit 1
