"""Where the `primer` command begins: Ctrl-C ends it with one line from its first moment, while its libraries still load.

Imports nothing of ours, and nothing heavy, at its top.
"""

import os
import signal
import sys

INTERRUPTED_EXIT = 128 + signal.SIGINT


def launch() -> None:
    """Run the command line. Commands are safe against a lost machine, so that Ctrl-C may leave one wherever it stands."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)
    from primer.cli.main import run

    run()


def _leave(_number: int, _frame: object) -> None:
    os.write(sys.stderr.fileno(), b"primer: interrupted\n")
    os._exit(INTERRUPTED_EXIT)


if __name__ == "__main__":
    launch()
