"""Statements in `.sql` files: found by name, and none twice."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import headrace.engine
from headrace.engine import sql_files


@pytest.fixture
def package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """A package of its own with empty folders."""
    folder = tmp_path / f"statements_{abs(hash(request.node.name))}"
    for name in ("queries", "migrations", "functions/inner"):
        (folder / name).mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, folder.name, raising=False)
    return folder


def test_a_file_holds_several_statements_by_name(package: Path) -> None:
    (package / "queries" / "a.sql").write_text(
        "-- A group.\n\n-- name: one\n-- Why.\nSELECT 1\n\n-- name: two\nSELECT 2\n"
    )
    (package / "queries" / "three.sql").write_text("SELECT 3\n")
    assert sql_files.queries(package.name) == {
        "one": "-- Why.\nSELECT 1\n",
        "two": "SELECT 2\n",
        "three": "SELECT 3\n",
    }


def test_a_name_that_is_there_twice_is_refused(package: Path) -> None:
    (package / "queries" / "a.sql").write_text("-- name: one\nSELECT 1\n")
    (package / "queries" / "b.sql").write_text("-- name: one\nSELECT 2\n")
    with pytest.raises(ValueError, match="'one' is there twice"):
        sql_files.queries(package.name)


def test_a_fragment_stands_where_it_is_included(package: Path) -> None:
    (package / "fragments").mkdir()
    (package / "fragments" / "shared.sql").write_text("-- Why.\nAND a\nAND b\n")
    (package / "queries" / "one.sql").write_text("WHERE c\n  -- include: shared\nLIMIT 1\n")
    (package / "functions" / "two.sql").write_text("-- include: shared\n")
    assert sql_files.queries(package.name) == {"one": "WHERE c\n  AND a\n  AND b\nLIMIT 1\n"}
    assert sql_files.functions(package.name) == {"two": "AND a\nAND b\n"}


def test_a_fragment_that_does_not_exist_is_an_error(package: Path) -> None:
    (package / "functions" / "one.sql").write_text("-- include: shared\n")
    with pytest.raises(FileNotFoundError, match="shared"):
        sql_files.functions(package.name)


def test_a_migration_says_which_programs_it_leaves_behind(package: Path) -> None:
    (package / "migrations" / "0002_later.sql").write_text("SELECT 2;\n")
    (package / "migrations" / "0001_first.sql").write_text("-- A.\n-- min_program: 1\nSELECT 1;\n")
    assert [
        (each.number, each.name, each.min_program) for each in sql_files.migrations(package.name)
    ] == [(1, "0001_first", 1), (2, "0002_later", None)]


def test_functions_are_found_in_folders(package: Path) -> None:
    (package / "functions" / "b.sql").write_text("B")
    (package / "functions" / "inner" / "a.sql").write_text("A")
    assert list(sql_files.functions(package.name).items()) == [("a", "A"), ("b", "B")]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_statement_that_is_used_exists_and_every_one_is_used(engine: str) -> None:
    folder = Path(headrace.engine.__path__[0]) / engine
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    used = {name for text in texts for name in re.findall(r"\bsql\.([a-z_]+)\b(?! import)", text)}
    statements = sql_files.queries(f"headrace.engine.{engine}")
    assert used - {"py"} == set(statements)


def test_a_statement_that_does_not_exist_is_named() -> None:
    statements = sql_files.Statements({"one": "SELECT 1"}, str.lower)
    assert statements.one == "select 1"
    with pytest.raises(AttributeError, match="two"):
        _ = statements.two


def test_parameters_of_sqlite_are_bound_as_every_python_accepts_it() -> None:
    # Python 3.12 warns of `?1` that is given a sequence: to SQLite that is a name. Either every
    # parameter has a name and a mapping is given, or none has and a sequence is.
    for name, text in sql_files.queries("headrace.engine.sqlite").items():
        code = re.sub(r"--.*|'[^']*'", "", text)
        assert not re.search(r"\?\d", code), f"{name}: write ?, and give its value in that place"
        assert not (re.search(r"[:@$][a-z]", code) and "?" in code), f"{name}: names, or places"
