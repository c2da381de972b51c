"""What process number 1 of a container has to do besides its work: collect the dead of others.

Whatever loses its parent becomes a child of process number 1, and stays in the table of processes
after its end until that asks for its exit code. A worker cannot do that for strangers: it would
take exit codes away that `subprocess` and `asyncio` wait for. So the worker runs in a process of
its own, and the first does nothing else than pass signals on, collect, and end as the worker does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

FIRST = 1
# Those that run handlers, which may start anything.
COMMANDS = {"worker", "up"}
_PASSED_ON = {
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
}


def leave_the_first_process(arguments: list[str]) -> None:
    """Go on in a process of its own, if this is number 1 and the command runs handlers.

    Called before there are threads, because it forks.
    """
    if os.getpid() == FIRST and COMMANDS.intersection(arguments):
        # A signal that comes meanwhile waits until there is somebody to pass it on to.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        child = os.fork()
        if child:
            _stay(child, before)
        _take_the_terminal()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stay(child: int, before: set[signal.Signals | int]) -> NoReturn:
    def pass_on(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _take_the_terminal() -> None:
    """Be a process group of its own: Ctrl-C would come twice, from the terminal and passed on."""
    os.setpgid(0, 0)
    with contextlib.suppress(OSError, ValueError):
        terminal = sys.stdin.fileno()
        if os.isatty(terminal):
            # Whoever is not in front is stopped when it says who shall be, unless it ignores that.
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(terminal, os.getpid())
            signal.signal(signal.SIGTTOU, before)
