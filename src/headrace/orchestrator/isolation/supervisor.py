"""The program between a worker and one child process: it kills all that the child has started.

    worker ── supervisor ── child ── what handlers start, and what that starts, in any session

Promise: when the child has ended, when the worker asks for it, and when the worker has ended in any
way (SIGKILL), everything below the supervisor is killed; then the supervisor ends with the child's
exit status. So when the supervisor has ended, nothing is left.

On Linux the supervisor becomes the parent of whatever loses its parent below it
(PR_SET_CHILD_SUBREAPER), in any session or group; no root and no cgroup is needed. Elsewhere only
the child's process group is found: programs in a session of their own are left.

With a limit for the memory of the tree (see tree_memory.py) all are killed when it is exceeded, and
the worker is told by a line in a pipe: how that was found, the bytes, and the number of processes.

Started by file name and without `site`, so it imports the standard library only, and little of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from headrace.orchestrator.isolation.tree_memory import Tree

# In the environment of a child and of all that it starts, to find them if the supervisor is killed.
MARKER = "_HEADRACE_CHILD_ID"
# What cannot be killed (another user's process, or stuck in the kernel) is left after so long.
END_SECONDS = 5.0
_LINUX = sys.platform == "linux"
_EXITING = 0x4  # the kernel's PF_EXITING
_PARENT_DEATH_SIGNAL, _DUMPABLE, _CHILD_SUBREAPER = 1, 4, 36
_SIGNALS = (signal.SIGCHLD, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> NoReturn:
    """Run the child: `supervisor.py PARENT LIFELINE CHANNEL BEGUN_MARKS LIMIT REPORT PROGRAM…`.

    The lifeline is a pipe: the worker writes to it, or closes it, to have everything ended. LIMIT
    is in bytes; with 0 there is none, and no pipe REPORT.
    """
    parent, lifeline, channel, begun_marks, limit, report = map(int, sys.argv[1:7])
    os.set_inheritable(lifeline, False)
    if limit:
        os.set_inheritable(report, False)
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    for number in _SIGNALS:
        # A signal to the whole service is for the worker. Here signals only wake `_watch`.
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    adopts = _control(_CHILD_SUBREAPER, 1)
    # Not SIGKILL: there is something to do first. It also comes when only a thread of the worker
    # has ended, so `_watch` compares the parent.
    _control(_PARENT_DEATH_SIGNAL, signal.SIGUSR2)
    tree = _limit_tree(limit) if limit else None
    child = _start([*sys.argv[7:], str(channel), str(begun_marks), str(os.getpid())], tree)
    # The worker has to see that the channel is closed when the child has ended.
    os.close(channel)
    os.close(begun_marks)
    status = _watch(child, parent=parent, lifeline=lifeline, wakeup=wakeup_read, tree=tree)
    _kill_descendants(child, ended=status is not None, adopts=adopts)
    if tree is not None:
        tree.close()
        if tree.exceeded is not None:
            os.write(report, tree.exceeded.encode())
    _end_like(status)


def _limit_tree(limit: int) -> Tree:
    # Neither this folder nor the package is on the path: the supervisor starts without them.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    ways = importlib.import_module("tree_memory")
    del sys.path[0]
    tree: Tree = ways.limit_tree(
        limit, find=lambda: descendants(os.getpid()), began=lambda pid: _stat(pid)[2]
    )
    return tree


def _start(program: list[str], tree: Tree | None) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        if tree is not None:
            tree.enter()
        os.execv(program[0], program)  # noqa: S606 - no shell
    except OSError as error:
        os.write(2, f"{program[0]} cannot be started: {error}\n".encode())
    os._exit(127)


def _watch(child: int, *, parent: int, lifeline: int, wakeup: int, tree: Tree | None) -> int | None:
    """Wait for the end of the child and return its status; None: it has to be killed."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while (status := _reap()[0].get(child)) is None and os.getppid() == parent:
        pause = None if tree is None else tree.pause
        for descriptor, _ in poll.poll(None if pause is None else pause * 1_000):
            if descriptor == lifeline:
                return None  # written to or closed
            os.read(wakeup, 4096)
        if tree is not None and tree.check():
            return None
    return status


def _reap() -> tuple[dict[int, int], bool]:
    """Return the status of all that has ended below, and whether nothing is left."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, True
        if pid == 0:
            return ended, False
        ended[pid] = status


def _kill_descendants(child: int, *, ended: bool, adopts: bool) -> None:
    """Kill until nothing is left below. What loses its parent becomes a child of this process."""
    if not ended:
        _kill(child)
    if not (ended and adopts):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)

    def none_left() -> bool:
        nonlocal ended
        collected, none = _reap()
        ended = child in collected or ended
        return none or (ended and not adopts)

    left = end_all(lambda: descendants(os.getpid()), none_left)
    if left:
        named = ", ".join(map(str, sorted(left)))
        os.write(2, f"processes that a handler started could not be killed: {named}\n".encode())


def _end_like(status: int | None) -> NoReturn:
    """End with the status of the child, for the worker to report. None: exit with 0."""
    code = 0 if status is None else os.waitstatus_to_exitcode(status)
    if code < 0:
        # The child may have written a core file; this process must not.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _control(_DUMPABLE, 0)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _control(option: int, value: int) -> bool:
    """Call prctl. Return False if this system has no such option."""
    if not _LINUX:
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


# --- finding and killing processes; the worker does it too, if its supervisor was killed


def end_all(find: Callable[[], dict[int, int]], done: Callable[[], bool] | None = None) -> set[int]:
    """Kill what is found until `done`, or until nothing is found. Return what is left."""
    end = time.monotonic() + END_SECONDS
    pause = 0.001
    while done is None or not done():
        found = find()
        if not found and done is None:
            break
        for pid, began in found.items():
            # The id may belong to another process since it was found.
            if _stat(pid)[2] == began:
                _kill(pid)
        if time.monotonic() > end:
            return set(found)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return set()


def exists(pid: int, began: int) -> bool:
    """Return whether this very process still runs. A zombie does not."""
    state, _, since = _stat(pid)
    return since == began and state not in (b"Z", b"X")


def descendants(root: int) -> dict[int, int]:
    """Return all processes below one, with the times at which they began."""
    parents = {pid: _stat(pid)[1:] for pid in _pids()}
    found: dict[int, int] = {}
    newest = {root}
    while newest:
        newest = {pid for pid, (parent, _) in parents.items() if parent in newest} - {*found, root}
        found |= {pid: parents[pid][1] for pid in newest}
    return found


def marked(identity: str) -> dict[int, int]:
    """Return all processes whose environment has the marker of this child.

    A process that is exiting has lost its environment, but may still be seen for a moment: it is
    included, so that it is waited for. To kill it does nothing.
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
    except ProcessLookupError:  # it has ended
        return []


def _ending(pid: int) -> bool:
    """Return whether a process of this user is exiting: it has not ended, but cannot go on."""
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
    """Return a process's state, its parent, and when it began: -1 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name comes before, and may contain spaces and brackets.
            fields = file.read().rpartition(b")")[2].split()
        return fields[0], int(fields[1]), int(fields[19])
    except (OSError, IndexError):
        return b"X", -1, -1


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
