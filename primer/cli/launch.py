"""Where the `primer` command begins and ends: Ctrl-C ends it with one line from its first moment, while its libraries still load, and what
it has done is its exit code.

Imports nothing of ours, and nothing heavy, at its top.
"""

import os
import signal
import sys

INTERRUPTED_EXIT = 128 + signal.SIGINT
CLOSED_PIPE_EXIT = 128 + signal.SIGPIPE


def launch() -> None:
    """Run the command line and leave the process. Commands are safe against a lost machine, so Ctrl-C may leave one wherever it stands."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
    from primer.cli.main import run

    exit_code: object = 0
    try:
        run()
    except SystemExit as stop:
        exit_code = stop.code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        exit_code = CLOSED_PIPE_EXIT
    # All is closed by now. Threads of native libraries that are still there may abort an interpreter that takes itself down, and a
    # command that did its work would end as one that crashed.
    os._exit(exit_code if isinstance(exit_code, int) else int(exit_code is not None))


def _interrupt(_number: int, _frame: object) -> None:
    os.write(sys.stderr.fileno(), b"primer: interrupted\n")
    os._exit(INTERRUPTED_EXIT)


if __name__ == "__main__":
    launch()
