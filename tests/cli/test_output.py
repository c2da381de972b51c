"""Tables for people, in a pipe and on a terminal."""

from __future__ import annotations

import pytest

from headrace.cli import output


def test_a_plain_table_is_aligned_whatever_the_script() -> None:
    text = output.plain_table(("NAME", "N"), [["한국", "7"], ["abcdef", "10"]], right=("N",))
    assert text == "NAME     N\n한국     7\nabcdef  10\n"


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("ID", "WHAT"), [("x" * 300, "y" * 300)])
    assert "x" * 300 + "  " + "y" * 300 in capsys.readouterr().out


def test_a_cell_cannot_break_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("ID", "WHAT"), [("1", "a\nb\x1b[2J")])
    assert capsys.readouterr().out.splitlines()[1] == "1   a\\nb\\x1b[2J"


def test_fields_of_several_lines_are_indented(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_fields([("Job", "1"), ("Error", "a\nb")])
    assert capsys.readouterr().out == "Job    1\nError  a\n       b\n"


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("Work", 2) as advance:
        advance(1)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
