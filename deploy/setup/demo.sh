#!/usr/bin/env bash
# The first five minutes: the samples go into both indexes, then questions are asked as somebody of the groups named below.
# usage: VENV=… PRIMER_HOME=… deploy/setup/demo.sh     (`make demo` does it; a second run finds its work done)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

PATH="$(cd "${VENV:-.venv}" && pwd)/bin:$PATH"
mkdir -p "${PRIMER_HOME:-.primer}"
PRIMER_HOME=$(cd "${PRIMER_HOME:-.primer}" && pwd)
export PATH PRIMER_HOME HF_HUB_OFFLINE=1

# None repeats the words of its answer, which stands in a docx, xlsx, eml, csv, pdf and pptx file, in this order.
questions=(
    "How much of my salary do I keep when we have a baby?"
    "What do I earn for being reachable at night, one week out of four?"
    "Which batteries have to be swapped, and when do replacements arrive?"
    "What does the outdoor radio gateway cost?"
    "How high above the river does the station have to hang?"
    "What will I do on my first Monday in the company?"
)

show() {
    printf '\n$ primer %s\n' "$*"
    primer "$@"
}

show init
# samples.access.yaml beside the folder says which groups may see what.
show source add samples --name samples
show sync
for question in "${questions[@]}"; do
    show search "$question" --groups everyone,hr,finance -k 3
done
