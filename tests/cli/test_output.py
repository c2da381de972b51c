"""Tables for people, in a pipe and on a terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest

from headrace.cli import output

COLUMNS: output.Columns[tuple[str, object]] = {
    "NAME": lambda row: row[0],
    ">N": lambda row: row[1],
}


def test_a_plain_table_is_aligned_whatever_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(COLUMNS, [("한국", 7), ("abcdef", 10)])
    assert capsys.readouterr().out == "NAME     N\n한국     7\nabcdef  10\n"


def test_a_long_table_comes_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    table = output.Table(COLUMNS)
    table.add([("longer", 1)])
    table.add([("b", 22)])
    assert capsys.readouterr().out == "NAME    N\nlonger  1\nb       22\n"


def test_a_long_list_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = output.JsonList("jobs")
    document.add([{"a": 1}, {"a": 2}])
    document.add([{"a": 3}])
    document.end(cursor=None)
    written = capsys.readouterr().out
    assert json.loads(written) == {"jobs": [{"a": 1}, {"a": 2}, {"a": 3}], "cursor": None}
    output.JsonList("jobs").end(cursor="x")
    assert json.loads(capsys.readouterr().out) == {"jobs": [], "cursor": "x"}


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "euc-kr", "utf-8"])
def test_json_is_json_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stream)
    told = {"name": 'é € 한국 ☂ 🎉 \\ "', "line": "\u2028"}
    output.print_json(told)
    output.print_json_line(told)
    document = output.JsonList("jobs")
    document.add([told])
    document.end(cursor="ü")
    stream.flush()
    # A reader takes it for UTF-8, as JSON is.
    lines = raw.getvalue().decode("utf-8")
    decoder = json.JSONDecoder()
    first, end = decoder.raw_decode(lines)
    second, more = decoder.raw_decode(lines[end:].lstrip())
    assert first == second == told
    last = json.loads(lines[end:].lstrip()[more:])
    assert last == {"jobs": [told], "cursor": "ü"}


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(COLUMNS, [("x" * 300, "y" * 300)])
    assert "x" * 300 + "  " + "y" * 300 in capsys.readouterr().out


def test_a_cell_cannot_break_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(COLUMNS, [("1", "a\nb\x1b[2J")])
    assert capsys.readouterr().out.splitlines()[1] == "1     a\\nb\\x1b[2J"


def test_fields_of_several_lines_are_indented(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_fields([("Job", "1"), ("Error", "a\nb")])
    assert capsys.readouterr().out == "Job    1\nError  a\n       b\n"


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("Work", 2) as advance:
        advance(1)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
