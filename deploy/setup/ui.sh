#!/usr/bin/env bash
# Dagster's web UI and daemon over a Primer home, until Ctrl-C.
# usage: VENV=… PRIMER_HOME=… PORT=… deploy/setup/ui.sh     (`make ui` does it)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

PATH="$(cd "${VENV:-.venv}" && pwd)/bin:$PATH"
mkdir -p "${PRIMER_HOME:-.primer}"
PRIMER_HOME=$(cd "${PRIMER_HOME:-.primer}" && pwd)
DAGSTER_HOME=$PRIMER_HOME/dagster
# `dagster dev` says of itself that `dg dev` is preferred; that is another package, and no concern of who wants to see a page.
PYTHONWARNINGS='ignore:Function `dev_command` is superseded'
export PATH PRIMER_HOME DAGSTER_HOME PYTHONWARNINGS HF_HUB_OFFLINE=1

primer init
# From its own home: started in the checkout, Dagster warns of the dagster.yaml there that it does not use.
cd "$DAGSTER_HOME"

# The servers, the daemon and its runs are one process group, ended as one: a signal to the launcher alone leaves its children behind.
set -m
dagster dev --host 127.0.0.1 --port "${PORT:-3000}" --module-name primer.definitions &
group=$!
set +m

end() {
    trap - INT TERM HUP EXIT
    kill -INT -- "-$group" 2>/dev/null || true
    wait "$group" || true
    kill -KILL -- "-$group" 2>/dev/null || true
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
wait "$group"
