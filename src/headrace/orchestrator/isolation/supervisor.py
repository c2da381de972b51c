"""The program between a worker and one child process: it ends all that the child has started.

    worker ── supervisor ── child ── what handlers start, and what that starts, in any session

Promise: when the child has ended, when the worker says so, and when the worker is gone, however it
went (SIGKILL), everything below the supervisor is killed; then the supervisor ends, the way the
child did. So whoever has seen the supervisor end knows that nothing is left.

On Linux the supervisor adopts whatever loses its parent below it (PR_SET_CHILD_SUBREAPER), so
nothing leaves its family, whatever sessions and groups it makes; no root and no cgroup is needed.
Elsewhere only the child's process group is found: programs in a session of their own stay.

Started by file name and without `site`: only the standard library is here, and little of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

# In the environment of a child and of all that it starts: found by it if the supervisor was killed.
MARKER = "_HEADRACE_CHILD_ID"
# What cannot be killed (another user's, or stuck in the kernel) is left after so long.
END_SECONDS = 5.0
_LINUX = sys.platform == "linux"
_EXITING = 0x4  # the kernel's PF_EXITING
_PARENT_DEATH_SIGNAL, _DUMPABLE, _CHILD_SUBREAPER = 1, 4, 36
_SIGNALS = (signal.SIGCHLD, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> NoReturn:
    """Start the child and keep it: `supervisor.py PARENT LEASH LINE MARKS PROGRAM…`."""
    parent, lifeline, line, begun_marks = map(int, sys.argv[1:5])
    os.set_inheritable(lifeline, False)
    wakeup, wakeup_end = os.pipe()
    os.set_blocking(wakeup_end, False)
    for number in _SIGNALS:
        # A signal to the whole service is for the worker. These only wake us, to look again.
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
    adopts = _control(_CHILD_SUBREAPER, 1)
    # Not SIGKILL: there is something to do first. It also comes when a mere thread of the worker
    # has ended, so it is only a reason to look who our parent is.
    _control(_PARENT_DEATH_SIGNAL, signal.SIGUSR2)
    child = _start([*sys.argv[5:], str(line), str(begun_marks), str(os.getpid())])
    # The worker has to see that the line is closed when the child has ended.
    os.close(line)
    os.close(begun_marks)
    status = _watch(child, parent=parent, lifeline=lifeline, wakeup=wakeup)
    _end_family(child, ended=status is not None, adopts=adopts)
    _end_like(status)


def _start(program: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        os.execv(program[0], program)  # noqa: S606 - no shell
    except OSError as error:
        os.write(2, f"{program[0]} cannot be started: {error}\n".encode())
    os._exit(127)


def _watch(child: int, *, parent: int, lifeline: int, wakeup: int) -> int | None:
    """Wait. Answers the status of a child that ended by itself; None: it has to be ended."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while (status := _reap()[0].get(child)) is None and os.getppid() == parent:
        for descriptor, _ in poll.poll():
            if descriptor == lifeline:
                return None  # a word, or the end of it: both mean the same
            os.read(wakeup, 4096)
    return status


def _reap() -> tuple[dict[int, int], bool]:
    """Collect all that has ended below, with the status; and whether nobody is left."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, True
        if pid == 0:
            return ended, False
        ended[pid] = status


def _end_family(child: int, *, ended: bool, adopts: bool) -> None:
    """Kill until nobody is left below. The kernel knows: who loses its parent comes to us."""
    if not ended:
        _kill(child)
    if not (ended and adopts):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)

    def nobody() -> bool:
        nonlocal ended
        collected, alone = _reap()
        ended = child in collected or ended
        return alone or (ended and not adopts)

    left = end_all(lambda: descendants(os.getpid()), nobody)
    if left:
        named = ", ".join(map(str, sorted(left)))
        os.write(2, f"processes that a handler started could not be killed: {named}\n".encode())


def _end_like(status: int | None) -> NoReturn:
    """End as the child did, so that the worker can tell how that was. By order: in peace."""
    code = 0 if status is None else os.waitstatus_to_exitcode(status)
    if code < 0:
        # If there is a core to be written, it is the child's.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _control(_DUMPABLE, 0)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _control(option: int, value: int) -> bool:
    """Set something about this process. False: this system cannot."""
    if not _LINUX:
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


# --- finding and ending processes; the worker needs this too, should its supervisor be killed


def end_all(find: Callable[[], dict[int, int]], done: Callable[[], bool] | None = None) -> set[int]:
    """Kill what is found until `done`, or until nothing is found. Answers what resists."""
    end = time.monotonic() + END_SECONDS
    pause = 0.001
    while done is None or not done():
        found = find()
        if not found and done is None:
            break
        for pid, began in found.items():
            # A number may have been given to somebody else since it was found.
            if _stat(pid)[2] == began:
                _kill(pid)
        if time.monotonic() > end:
            return set(found)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return set()


def exists(pid: int, began: int) -> bool:
    """Whether this very process is still there. One that nobody has waited for has ended."""
    state, _, since = _stat(pid)
    return since == began and state not in (b"Z", b"X")


def descendants(root: int) -> dict[int, int]:
    """All processes below one, with the times at which they began."""
    parents = {pid: _stat(pid)[1:] for pid in _pids()}
    found: dict[int, int] = {}
    newest = {root}
    while newest:
        newest = {pid for pid, (parent, _) in parents.items() if parent in newest} - {*found, root}
        found |= {pid: parents[pid][1] for pid in newest}
    return found


def marked(identity: str) -> dict[int, int]:
    """All processes whose environment says that they were started below this child.

    One that is about to end has lost its environment already, and may still be seen at work for a
    moment: it counts as well, so that it is waited for. To kill it does nothing.
    """
    entry = f"{MARKER}={identity}".encode()
    found = {}
    for pid in _pids():
        with contextlib.suppress(OSError):
            if entry in _environment(pid) or _ending(pid):
                found[pid] = _stat(pid)[2]
    return found


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except ProcessLookupError:  # it has none any more
        return []


def _ending(pid: int) -> bool:
    """Whether a process of ours is inside of its exit: not gone, and not to be stopped any more."""
    if os.stat(f"/proc/{pid}").st_uid != os.getuid():
        return False
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return bool(int(fields[6]) & _EXITING) and fields[0] not in (b"Z", b"X")


def _pids() -> Iterator[int]:
    if _LINUX:
        with contextlib.suppress(OSError):
            yield from (int(name) for name in os.listdir("/proc") if name.isdigit())


def _stat(pid: int) -> tuple[bytes, int, int]:
    """A process's state and parent, and when it began, which is -1 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name comes before, and may hold spaces and brackets.
            fields = file.read().rpartition(b")")[2].split()
        return fields[0], int(fields[1]), int(fields[19])
    except (OSError, IndexError):
        return b"X", -1, -1


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
