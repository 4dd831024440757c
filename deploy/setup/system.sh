#!/usr/bin/env bash
# Debian packages that pip cannot bring. Installs those that are missing; does and says nothing when all are there.
# usage: deploy/setup/system.sh python|ocr|postgres...     (VENV and PYTHON as in the Makefile)
set -euo pipefail

venv=${VENV:-.venv}
python=${PYTHON:-python3.11}
missing=()

need_python() {
    "$venv/bin/python" -c '' 2>/dev/null && return
    command -v "$python" >/dev/null || missing+=("python3.11")
    # Debian splits ensurepip out of the standard library, and a venv without it has no pip.
    "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=("python3.11-venv")
}

need_ocr() {
    if ! command -v tesseract >/dev/null; then
        missing+=("tesseract-ocr" "tesseract-ocr-eng" "tesseract-ocr-osd")
        return
    fi
    local language languages
    languages=$(tesseract --list-langs 2>&1)
    for language in eng osd; do
        grep -qx "$language" <<<"$languages" || missing+=("tesseract-ocr-$language")
    done
}

need_postgres() {
    # The tests start servers of their own, so only the binaries matter: Debian keeps them off the PATH.
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=("postgresql")
}

for what in "$@"; do
    case $what in
        python | ocr | postgres) "need_$what" ;;
        *) echo "system.sh: unknown requirement '$what'; use python, ocr or postgres" >&2 && exit 2 ;;
    esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

by_hand="apt-get update && apt-get install -y ${missing[*]}"
as_root=()
if ! command -v apt-get >/dev/null; then
    echo "Primer needs the Debian packages: ${missing[*]}. There is no apt-get here; install what they hold with this system's own package manager, then run make again." >&2
    exit 1
elif [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Primer needs the Debian packages: ${missing[*]}. Ask for them as root, then run make again: $by_hand" >&2
        exit 1
    fi
    as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Another apt at work (a fresh machine's unattended upgrades) is waited for, not failed on.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
echo "Installing Debian packages: ${missing[*]}"
if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    echo "Could not install ${missing[*]} (apt-get's own words are above). By hand: $by_hand" >&2
    exit 1
fi
