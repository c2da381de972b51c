"""How much memory a process tree may use: by a cgroup of its own where one can be made, else by
adding up what its processes use, again and again.

Loaded by the supervisor by file name, and only for tasks with `tree_memory_limit`: it imports the
standard library only.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable

# Between two looks at a tree; longer if a look takes long, so that it is a small part of the work.
LOOK_SECONDS = 0.05
LONGEST_SECONDS = 1.0
SHARE = 20.0
DELEGATED = ("user.delegate", "trusted.delegate")
PREFIX = "headrace-"
KIBIBYTE = 1_024
REMOVE_SECONDS = 1.0
PROCESSES = "/proc"


class Watched:
    """The sum over all processes, seen from time to time: it can be exceeded for a moment.

    RSS counts what processes share once for each of them, so its sum is never too small, and it is
    cheap. Only if that is above the limit the sum of PSS is read, which shares it out. Where PSS
    cannot be read, RSS counts. What was swapped out counts too.
    """

    def __init__(self, limit: int, find: Callable[[], Iterable[int]]) -> None:
        self._limit = limit
        self._find = find
        self._next = 0.0
        self.exceeded: str | None = None

    @property
    def pause(self) -> float | None:
        """Return the seconds until the next look."""
        return max(self._next - time.monotonic(), 0.0)

    def enter(self) -> None:
        """In the child, before it begins."""

    def check(self) -> bool:
        """Return whether the tree has exceeded its limit, looking if it is time to."""
        if self.exceeded is None and time.monotonic() >= self._next:
            # Processor time: on a busy machine a look lasts longer, and must not come more rarely.
            began = time.thread_time()
            self.exceeded = self._look()
            took = time.thread_time() - began
            pause = min(max(LOOK_SECONDS, SHARE * took), LONGEST_SECONDS)
            self._next = time.monotonic() + pause
        return self.exceeded is not None

    def close(self) -> None:
        """After all have ended."""

    def _look(self) -> str | None:
        pids = list(self._find())
        if sum(map(resident, pids)) <= self._limit:
            return None
        used, unknown = 0, 0
        for pid in pids:
            share = proportional(pid)
            unknown += share is None
            used += resident(pid) if share is None else share
        if used <= self._limit:
            return None
        way = "pss" if not unknown else "rss" if unknown == len(pids) else "mixed"
        return f"{way} {used} {len(pids)}"


def resident(pid: int) -> int:
    """Return the bytes of a process that are in memory or swapped out, shared ones included."""
    return _added(f"{PROCESSES}/{pid}/status", (b"VmRSS:", b"VmSwap:")) or 0


def proportional(pid: int) -> int | None:
    """Return the same with its part of what it shares; None if that may not be read, or if the
    kernel does not tell.
    """
    return _added(f"{PROCESSES}/{pid}/smaps_rollup", (b"Pss:", b"SwapPss:"))


def _added(path: str, names: tuple[bytes, ...]) -> int | None:
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except ProcessLookupError:
        return 0  # it has ended
    except FileNotFoundError:
        return None if os.path.exists(os.path.dirname(path)) else 0
    except OSError:
        return None
    values = (line.split() for line in lines if line.startswith(names))
    return sum(int(value[1]) * KIBIBYTE for value in values)


class Cgroup:
    """A cgroup (version 2) for the child and all that it starts, in whatever session: the kernel
    keeps the limit, and kills all of them at once.

    It is made beside the one of this process, in a folder that was delegated (`Delegate=` of
    systemd) and has the memory controller. No process but the child is moved.
    """

    pause: float | None = None

    def __init__(self, limit: int, folder: str) -> None:
        """Make it. Raises `OSError` if that is not possible."""
        self.folder = folder
        self.exceeded: str | None = None
        os.mkdir(folder)
        try:
            _write(folder, "memory.max", str(limit))
            _write(folder, "memory.oom.group", "1")
            with contextlib.suppress(OSError):  # a kernel without swap
                _write(folder, "memory.swap.max", "0")
        except OSError:
            os.rmdir(folder)
            raise

    def enter(self) -> None:
        """In the child, before it begins."""
        _write(self.folder, "cgroup.procs", "0")

    def can_be_entered(self) -> bool:
        """Try it with a process that does nothing else."""
        pid = os.fork()
        if not pid:
            try:
                self.enter()
            except OSError:
                os._exit(1)
            os._exit(0)
        return os.waitpid(pid, 0)[1] == 0

    def check(self) -> bool:
        """The kernel does that."""
        return False

    def close(self) -> None:
        """After all have ended: find out whether the limit was why, and remove the cgroup."""
        events = dict(line.split() for line in _read(self.folder, "memory.events").splitlines())
        if int(events.get("oom_kill", 0)):
            used = _read(self.folder, "memory.peak") or _read(self.folder, "memory.max")
            self.exceeded = f"cgroup {int(used)} 0"
        with contextlib.suppress(OSError):
            _write(self.folder, "cgroup.kill", "1")
        end = time.monotonic() + REMOVE_SECONDS
        while not _removed(self.folder) and time.monotonic() < end:
            time.sleep(0.01)


Tree = Watched | Cgroup


def limit_tree(
    limit: int,
    *,
    find: Callable[[], Iterable[int]],
    began: Callable[[int], int],
    parent: str | None = None,
) -> Tree:
    """Return the better of the two ways that can be used here. `find` returns the processes of the
    tree, `began` when a process began.
    """
    folder = parent or delegated()
    if folder is not None:
        pid = os.getpid()
        try:
            _enable_memory(folder)
            _remove_left(folder, began)
            made = Cgroup(limit, os.path.join(folder, f"{PREFIX}{pid}-{began(pid)}"))
            if made.can_be_entered():
                return made
            made.close()
        except OSError:
            pass  # somebody else's rules; the other way needs no permission
    return Watched(limit, find)


def delegated() -> str | None:
    """Return the folder in which this process may make cgroups; None if there is none.

    Being allowed to write is not enough, as root may write anywhere: the folder above our own has
    to be marked as delegated, and ours has to be within it, because a cgroup with processes has
    none with limits below it.
    """
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            own = next(line[3:].rstrip("\n") for line in file if line.startswith("0::"))
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split() for line in file]
        root, mount = next(
            (each[3], each[4]) for each in mounts if each[each.index("-") + 1] == "cgroup2"
        )
    except (OSError, StopIteration, ValueError, IndexError):
        return None
    if own == root or not own.startswith(root.rstrip("/") + "/"):
        return None
    folder = os.path.dirname(os.path.join(mount, os.path.relpath(own, root)))
    for name in DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return folder
    return None


def _enable_memory(folder: str) -> None:
    if "memory" not in _read(folder, "cgroup.subtree_control").split():
        _write(folder, "cgroup.subtree_control", "+memory")


def _remove_left(folder: str, began: Callable[[int], int]) -> None:
    """Remove cgroups whose supervisor was killed. What is not empty stays."""
    for name in os.listdir(folder):
        pid, _, since = name.removeprefix(PREFIX).partition("-")
        if name.startswith(PREFIX) and pid.isdigit() and str(began(int(pid))) != since:
            _removed(os.path.join(folder, name))


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _write(folder: str, name: str, text: str) -> None:
    # Not created if it is missing: then this is no cgroup, or it has no such controller.
    descriptor = os.open(os.path.join(folder, name), os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
