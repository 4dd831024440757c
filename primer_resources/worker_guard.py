"""What the code of a worker may not do, whatever a document makes it try: reach a network, start a program that was not given,
write outside its task's directory.

An audit hook of the interpreter refuses with PermissionError, as a system that forbids it would. It sees all that goes through Python;
native code below it is bounded by the process limits, an empty PATH and the kernel's own permissions.
"""

import errno
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_NETWORK = frozenset(
    {
        *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"),
        *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"),
    }
)
_STARTS = frozenset({"os.system", "os.exec", "os.fork", "os.forkpty", "os.spawn", "pty.spawn"})

_PATHS: dict[str, tuple[tuple[int, int | None], ...]] = {
    # Event → places of (path, directory descriptor) among its arguments, from CPython's table of audit events.
    "os.mkdir": ((0, 2),),
    "os.rmdir": ((0, 1),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((1, 3),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.utime": ((0, 3),),
}


class Guard:
    """Refuses what a task may not do. Once installed it stays until the process ends; `directory` is where the present task may write."""

    def __init__(self, programs: Path) -> None:
        """`programs` is the folder whose commands may be started."""
        self._programs = programs
        self._directory: str | None = None
        self._special: dict[str, Callable[[tuple[Any, ...]], None]] = {
            "open": self._opened,
            "socket.__new__": self._socket,
            "subprocess.Popen": self._started,
            "os.posix_spawn": self._started,
        }

    def install(self) -> None:
        """Refuse from now on."""
        sys.addaudithook(self._hook)

    def enter(self, directory: Path) -> None:
        """Let what follows write below `directory` and nowhere else."""
        self._directory = os.path.realpath(directory)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        special = self._special.get(event)
        if special is not None:
            special(args)
        elif event in _PATHS:
            for place, descriptor in _PATHS[event]:
                self._written(args[place], args[descriptor] if descriptor is not None else -1)
        elif event in _NETWORK:
            raise _refusal("a parse may not use the network", event)
        elif event in _STARTS:
            raise _refusal("a parse may not start processes", event)

    def _opened(self, args: tuple[Any, ...]) -> None:
        path, _, flags = args
        if isinstance(flags, int) and flags & _WRITES:
            self._written(path, -1)

    def _socket(self, args: tuple[Any, ...]) -> None:
        if args[1] != socket.AF_UNIX:
            raise _refusal("a parse may not use the network", "socket")

    def _started(self, args: tuple[Any, ...]) -> None:
        program = Path(os.fsdecode(args[0]))
        if program.parent not in (Path(), self._programs) or not (self._programs / program.name).exists():
            raise _refusal("a parse may not start programs that it was not given", str(program))

    def _written(self, path: Any, descriptor: Any) -> None:
        if isinstance(path, int) or self._directory is None:
            return
        name = os.fsdecode(path)
        if isinstance(descriptor, int) and descriptor >= 0 and not os.path.isabs(name):  # noqa: PTH117 - called very often
            name = f"/proc/self/fd/{descriptor}/{name}"
        # The last part is not followed: removing or renaming a link is about the link, and opening one that leads out is refused below.
        folder, last = os.path.split(name)
        place = f"{os.path.realpath(folder)}/{last}"
        target = os.path.realpath(place)
        if target.startswith("/dev/"):
            return
        for found in (place, target):
            if found != self._directory and not found.startswith(f"{self._directory}/"):
                raise _refusal("a parse may not write outside its own directory", name)


def _refusal(rule: str, what: str) -> PermissionError:
    return PermissionError(errno.EPERM, rule, what)
