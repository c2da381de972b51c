"""`engine/README.md` names every verb of the contract, and only files that exist."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import headrace.engine
from headrace.engine.base import Engine, LeaseKeeper, TransactionalProducing

FOLDER = Path(inspect.getfile(headrace.engine)).parent
FOLDERS = ("contract", None, "sqlite", "postgres", "redis")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|")
][2:]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_verb_is_in_the_table_once() -> None:
    listed = [verb for row in ROWS for verb in names(row[1])]
    assert len(listed) == len(set(listed))
    verbs = {
        name
        for protocol in (Engine, TransactionalProducing, LeaseKeeper)
        for base in protocol.__mro__
        for name, value in vars(base).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }
    assert set(listed) == verbs


def test_every_file_in_the_table_exists() -> None:
    for row in ROWS:
        for folder, cell in zip(
            ("contract", None, "sqlite", "postgres", "redis"), row, strict=True
        ):
            if folder is not None:
                missing = [name for name in names(cell) if not (FOLDER / folder / name).exists()]
                assert missing == [], f"{folder}: {missing}"
