"""Finds out who keeps a database locked, so that an error can name the process."""

from __future__ import annotations

import os
from pathlib import Path

LOCKS = Path("/proc/locks")
# Where SQLite locks the shared file of a write-ahead log for its one writer.
WRITER_BYTE = 120


def lock_holder(path: Path | None) -> int | None:
    """The process that is in a write transaction, as far as the system tells; Linux only.

    Looked up in a list: opening the locked file to ask would, once closed, drop the locks that
    this process has on it.
    """
    try:
        inode = os.stat(f"{path}-shm").st_ino
        lines = LOCKS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        # "7: POSIX ADVISORY WRITE 4711 fe:00:262242 120 120"; one that waits has "->" in front.
        fields = line.split()
        if fields[1] != "POSIX" or fields[3] != "WRITE" or fields[6] != str(WRITER_BYTE):
            continue
        if fields[5].rpartition(":")[2] == str(inode):
            return int(fields[4])
    return None
