#!/usr/bin/env bash
# Dagster's web UI and daemon, and Primer's HTTP API, over a Primer home, until Ctrl-C.
# usage: VENV=… PRIMER_HOME=… PORT=… API_PORT=… deploy/setup/ui.sh     (`make ui` does it)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

PATH="$(cd "${VENV:-.venv}" && pwd)/bin:$PATH"
mkdir -p "${PRIMER_HOME:-.primer}"
PRIMER_HOME=$(cd "${PRIMER_HOME:-.primer}" && pwd)
DAGSTER_HOME=$PRIMER_HOME/dagster
# `dagster dev` says of itself that `dg dev` is preferred (another package), and a backfill policy that it is in beta: for developers, not here.
PYTHONWARNINGS='ignore:Function `dev_command` is superseded,ignore:Parameter `backfill_policy` of function'
export PATH PRIMER_HOME DAGSTER_HOME PYTHONWARNINGS HF_HUB_OFFLINE=1

primer init
# From its own home: started in the checkout, Dagster warns of the dagster.yaml there that it does not use.
cd "$DAGSTER_HOME"

# A process group of its own. The launcher is asked first, since it ends its servers in order; what is left then (runs under way)
# gets the time to say that it was stopped, and after that it ends all the same. No run outlives the page that shows it.
set -m
dagster dev --host 127.0.0.1 --port "${PORT:-3000}" --module-name primer.definitions &
group=$!
# The UI goes on without it where its port is taken; it says so.
primer api --port "${API_PORT:-8788}" &
api=$!
set +m

end() {
    trap '' INT TERM HUP
    trap - EXIT
    kill -TERM -- "-$api" 2>/dev/null || true
    kill -INT "$group" 2>/dev/null || true
    # Bounded: a job started in the background inherits an ignored SIGINT, and then the launcher never ends by itself.
    timeout 20 tail --pid="$group" -f /dev/null || true
    kill -TERM -- "-$group" 2>/dev/null || true
    for _ in {1..50}; do
        kill -0 -- "-$group" 2>/dev/null || return 0
        sleep 0.2
    done
    kill -KILL -- "-$group" 2>/dev/null || true
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
wait "$group"
