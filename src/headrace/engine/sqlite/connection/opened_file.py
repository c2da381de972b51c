"""Tells whether a path still names the files that a connection has open.

SQLite goes on reading and writing a file that was deleted or replaced, as any program does: the
file has no name any more, and what is written to it is gone with the last program that has it open.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from headrace.errors import EngineUnavailable, StoreReplaced

Identity = tuple[int, int]
"""Device and number of a file. A file that is open keeps its number to itself."""

# What SQLite keeps beside a database: the log, and the index to it that processes share.
BESIDE = ("-wal", "-shm")
# A folder whose last change is older than this cannot have changed again unseen: a file system
# counts time in steps, and two changes within one of them look like one.
SETTLED_NANOSECONDS = 100_000_000


def identity(path: str) -> Identity | None:
    """Which file a path names; None if there is none that can be looked at, or an empty one, which
    is no database.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_size else None


class OpenedFile:
    """The files of one connection that has read something, so that all of them are open.

    SQLite keeps a log for as long as anybody has the database open, so each of them has to stay.
    """

    def __init__(self, path: Path, opened: Identity) -> None:
        self.path = os.path.abspath(path)
        self.opened = opened
        # Named after the file itself where the path is a link.
        self._real = os.path.realpath(self.path)
        self._beside: list[tuple[str, Identity]] = []
        self._folder = os.path.dirname(self._real)
        # When the folder had last changed when what is beside the file was seen to be there.
        self._settled = 0
        for ending in BESIDE:
            try:
                found = os.stat(self._real + ending)
            except FileNotFoundError:
                continue  # the file system allows no log of that kind
            except OSError as error:
                raise self._unseen(error) from error
            self._beside.append((self._real + ending, (found.st_dev, found.st_ino)))

    def check(self) -> None:
        """Raise `StoreReplaced` unless every path names what is open."""
        try:
            found = os.stat(self.path)
            if found.st_ino != self.opened[1] or found.st_dev != self.opened[0]:
                raise StoreReplaced(self._words("was replaced by another file"))
            if not found.st_size:
                raise StoreReplaced(self._words("was emptied; put it back from a backup"))
            # Whoever removes or replaces a file changes its folder. The log itself is not looked at
            # after every commit: that would make the next one write when it was changed, too,
            # which costs a tenth of it.
            changed = os.stat(self._folder).st_mtime_ns
            if changed == self._settled:
                return
            for path, expected in self._beside:
                found = os.stat(path)
                if (found.st_dev, found.st_ino) != expected:
                    raise BesideLost(self._lost_beside(path))
            if time.time_ns() - changed > SETTLED_NANOSECONDS:
                self._settled = changed
        except (FileNotFoundError, NotADirectoryError) as error:
            if error.filename != self.path:
                raise BesideLost(self._lost_beside(error.filename)) from None
            raise StoreReplaced(self._words("was deleted or moved; put it back")) from None
        except OSError as error:
            raise self._unseen(error) from error

    def log_is_gone(self) -> bool:
        """Whether nobody has begun another log or index in place of one that was lost."""
        return identity(self.path) == self.opened and all(
            not os.path.exists(path) or _is(path, expected) for path, expected in self._beside
        )

    def remove_beside(self) -> None:
        """Remove the log and the index of a file that another has replaced. SQLite would take them
        for those of the new file, and ruin it. Where only a link leads elsewhere they stay.
        """
        if identity(self._real) != self.opened:
            for path, expected in self._beside:
                if _is(path, expected):
                    os.unlink(path)

    def _unseen(self, error: OSError) -> EngineUnavailable:
        return EngineUnavailable(
            f"The database {self.path!r} cannot be looked at ({error}). Let this user read its "
            "folder."
        )

    def _lost_beside(self, path: str) -> str:
        return self._words(
            f"lost {os.path.basename(path)!r}, which belongs to it; start every program that uses "
            "it again"
        )

    def _words(self, what: str) -> str:
        return (
            f"The database {self.path!r} {what}. It happened while it was in use: what was asked "
            "for now may be lost."
        )


class BesideLost(StoreReplaced):
    """The database is there, but not its log or its index."""


def _is(path: str, expected: Identity) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == expected
