"""The empty data folder of a PostgreSQL server."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

# What initdb made with some binaries, for further servers; None while there was one server only.
_EMPTY: dict[Path, Path | None] = {}


def make_data(
    binaries: Path, data: Path, run: Callable[[list[str]], None], give: Callable[[Path], None]
) -> None:
    """Make the folder of a new server. From the second of this process on it is a copy of what
    initdb makes, for a quarter of its time.

    `run` runs a command as the user of the server, `give` gives that user a folder.
    """
    if binaries not in _EMPTY:
        _EMPTY[binaries] = None
        run(_initdb(binaries, data))
        return
    empty = _EMPTY[binaries]
    if empty is None:
        folder = Path(tempfile.mkdtemp(prefix="headrace-empty-"))
        atexit.register(_remove, folder, os.getpid())
        give(folder)
        empty = folder / "data"
        run(_initdb(binaries, empty))
        _EMPTY[binaries] = empty
    run(["cp", "-a", str(empty), str(data)])


def _initdb(binaries: Path, data: Path) -> list[str]:
    return [
        str(binaries / "initdb"),
        f"--pgdata={data}",
        *("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"),
    ]


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a fork
        shutil.rmtree(folder, ignore_errors=True)
