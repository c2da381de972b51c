"""The house stays one where a stranger finds the way: small rooms and files, a name for each."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import ROOT

MOST_FILES = 16
MOST_LINES = 350
SOURCES = [ROOT / "src" / "headrace", *sorted(ROOT.glob("apps/*/src"))]
CODE = {".py", ".pyi", ".sql", ".lua", ".html", ".js", ".css"}
# Declared for Python and for type checkers: nobody looks for code in them.
NO_CODE = {"__init__.py", "py.typed"}
# The contract and its implementations have the same names, so have an App and the one for code
# without an event loop.
CONTRACT = ROOT / "src" / "headrace" / "engine"
SAME_ON_PURPOSE = {"App"}


def files(root: Path) -> Iterator[Path]:
    return (path for path in sorted(root.rglob("*")) if path.suffix in CODE)


@pytest.mark.parametrize("root", SOURCES, ids=lambda root: root.parent.name)
def test_no_folder_is_crowded(root: Path) -> None:
    rooms = Counter(
        path.parent.relative_to(ROOT)
        for path in files(root)
        if path.name not in NO_CODE and path.suffix != ".pyi"
    )
    assert rooms
    assert [f"{room}: {count}" for room, count in rooms.items() if count > MOST_FILES] == []


@pytest.mark.parametrize("root", SOURCES, ids=lambda root: root.parent.name)
def test_no_file_is_long(root: Path) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for path in files(root)
        if path.suffix in {".py", ".sql", ".lua"}
    }
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_class_has_the_name_of_another() -> None:
    found: dict[str, list[Path]] = {}
    for path in files(ROOT / "src"):
        if path.suffix == ".py" and not path.is_relative_to(CONTRACT):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(path.relative_to(ROOT))
    assert "Task" in found
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in SAME_ON_PURPOSE} == {}
