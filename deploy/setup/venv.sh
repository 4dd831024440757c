#!/usr/bin/env bash
# The virtual environment with Primer in it, editable. Does nothing when pyproject.toml and constraints.txt are as they were installed.
# usage: deploy/setup/venv.sh VENV     (PYTHON names another Python 3.11 than python3.11)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=${1:?usage: deploy/setup/venv.sh VENV}
stamp=$venv/.primer-installed
# The checkout's path is part of it: an editable install belongs to one checkout.
wanted=$({ pwd -P && cat pyproject.toml constraints.txt; } | sha256sum)

is_ready() { [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; }

is_ready && exit 0
mkdir -p "$venv"
exec 9<"$venv"
flock 9 # two makes at once: the second waits, then finds it done
is_ready && exit 0

"$venv/bin/python" -c '' 2>/dev/null || "${PYTHON:-python3.11}" -m venv "$venv"
version=$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$version" != 3.11 ]; then
    echo "$venv is a Python $version environment and Primer needs 3.11. Name another with VENV=…, or remove it and run make again." >&2
    exit 1
fi
log=$venv/install.log
echo "Installing Primer and its packages into $venv (about 2.5 GB; some minutes the first time)"
# One call on purpose: torch resolved on its own could be another build than the one that the other packages agree with.
# pip's output goes to a file and not through --quiet, which would leave out the reasons of a conflict.
if ! "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off -c constraints.txt -e '.[dev]' </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "pip could not install Primer (its own words are above, all of them in $log); run make again once that is mended." >&2
    exit 1
fi
printf '%s\n' "$wanted" >"$stamp"
