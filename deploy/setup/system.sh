#!/usr/bin/env bash
# Debian packages that pip cannot bring. Installs those that are missing; does and says nothing when all are there.
# usage: deploy/setup/system.sh python|ocr|postgres|s3...     (VENV and PYTHON as in the Makefile)
set -euo pipefail

venv=${VENV:-.venv}
python=${PYTHON:-python3.11}
missing=()
# Services that these packages start by themselves, which nothing here uses.
services=()

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
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null && return
    missing+=("postgresql")
    services+=("postgresql.service")
}

need_s3() {
    # Ceph's object gateway and what it stands on. The tests start a cluster of their own; no manager, no monitor of disks.
    local program
    for program in ceph-mon ceph-osd radosgw radosgw-admin; do
        command -v "$program" >/dev/null && continue
        missing+=("ceph-mon" "ceph-osd" "radosgw" "ceph-common")
        services+=("ceph-crash.service" "smartmontools.service")
        return
    done
}

for what in "$@"; do
    case $what in
        python | ocr | postgres | s3) "need_$what" ;;
        *) echo "system.sh: unknown requirement '$what'; use python, ocr, postgres or s3" >&2 && exit 2 ;;
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

unwanted=()
if command -v systemctl >/dev/null; then
    for service in "${services[@]}"; do
        # One that is on already is somebody's, and stays.
        systemctl is-enabled --quiet "$service" 2>/dev/null || unwanted+=("$service")
    done
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

# It fails where systemd is installed and does not run; nothing was started there.
if [ ${#unwanted[@]} -gt 0 ]; then
    "${as_root[@]}" systemctl disable --now "${unwanted[@]}" >/dev/null 2>&1 || :
fi
