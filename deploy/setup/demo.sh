#!/usr/bin/env bash
# The first five minutes: the samples go into both indexes, then questions are asked as somebody of the groups named below.
# usage: VENV=… PRIMER_HOME=… deploy/setup/demo.sh     (`make demo` does it; a second run finds its work done)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

PATH="$(cd "${VENV:-.venv}" && pwd)/bin:$PATH"
mkdir -p "${PRIMER_HOME:-.primer}"
PRIMER_HOME=$(cd "${PRIMER_HOME:-.primer}" && pwd)
export PATH PRIMER_HOME HF_HUB_OFFLINE=1

# Each is answered from another format, as the first hit shows: docx, xlsx, eml, csv, pdf, pptx.
questions=(
    "How much of my salary do I keep when we have a baby?"
    "What can the hardware department spend this year?"
    "Which batteries have to be swapped, and when do replacements arrive?"
    "List price of the solar gateway for outdoor use?"
    "How high above the river does the station have to hang?"
    "What will I do on my first Monday in the company?"
)

show() { # the command as one would type it, then what it prints
    printf '\n$ primer'
    for word in "$@"; do
        if [[ $word == *" "* ]]; then printf ' "%s"' "$word"; else printf ' %s' "$word"; fi
    done
    printf '\n'
    primer "$@"
}

show init
# samples.access.yaml beside the folder says which groups may see what.
show source add samples --name samples
show sync
for question in "${questions[@]}"; do
    show search "$question" --groups everyone,hr,finance -k 3
done
