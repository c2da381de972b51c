"""A file system of a run's own, which can be made full without filling the machine's."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

SIZE_MB = 2_048
TRIES = 50


@contextlib.contextmanager
def volume(folder: Path) -> Iterator[Path]:
    """A folder for the store's data: a file system of its own where this user may mount one.

    It is in memory, and takes only what is written to it.
    """
    place = folder / "store"
    place.mkdir()
    mounted = os.geteuid() == 0 and _mount(place, f"size={SIZE_MB}m,mode=755")
    try:
        yield place
    finally:
        if mounted:
            _run("umount", "--lazy", str(place))


def is_own(place: Path) -> bool:
    """Whether a folder is a file system of its own."""
    return place.is_mount()


def fill(place: Path, room: int = 0) -> None:
    """Let nothing more be written but `room` bytes."""
    for _ in range(TRIES):
        usage = os.statvfs(place)
        used = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        # Refused if more was written since.
        if _mount(place, f"remount,size={used + room}"):
            return
    raise OSError(f"{place} could not be made smaller")


def widen(place: Path) -> None:
    """Let everything be written again."""
    if not _mount(place, f"remount,size={SIZE_MB}m"):
        raise OSError(f"{place} could not be made larger")


def _mount(place: Path, options: str) -> bool:
    return _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place))


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
