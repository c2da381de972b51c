"""Tables on a narrow terminal: no word is broken, nothing is hidden, and no line is too long."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import headrace.cli
from headrace.cli.columns import hanging, lay_out, longest_word, rows, wrapped
from headrace.cli.formatting import width
from tests.cli.conftest import Cli
from tests.cli.test_terminal import at_terminal

ANSI = re.compile(r"\x1b\[[0-9;]*m")
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C", "M"]), min_size=1)
TEXTS = st.lists(WORDS, max_size=20).map(" ".join)


@given(data=st.data(), room=st.integers(20, 200))
def test_every_table_has_all_its_words_within_the_width(data: st.DataObject, room: int) -> None:
    headers = data.draw(st.lists(WORDS, min_size=1, max_size=9))
    body = data.draw(st.lists(st.tuples(*(TEXTS for _ in headers)), max_size=4))
    table = [headers, *body]
    sizes = [max(width(row[index]) for row in table) for index in range(len(headers))]
    words = [max(longest_word(row[index]) for row in table) for index in range(len(headers))]
    layout = lay_out(sizes, words, room)
    assert sorted(column for group in layout.groups for column in group) == list(range(len(sizes)))
    assert layout.groups == sorted(layout.groups), "columns stay in their order"
    right = [index % 2 == 0 for index in range(len(headers))]
    for row in table:
        lines = list(rows(row, layout, right))
        parts = [part for line in lines for part in line]
        said = [word for cell in row for word in cell.split()]
        assert sorted(" ".join(parts).split()) == sorted(said)
        for line in lines:
            shown = "".join(line).rstrip()
            assert width(shown) <= room or longest_word(shown) > room - 30


@given(text=TEXTS, size=st.integers(5, 80))
def test_a_wrapped_text_has_all_its_words(text: str, size: int) -> None:
    assert " ".join(wrapped(text, size)) == text
    assert all(width(line) <= size or " " not in line for line in wrapped(text, size))


def test_what_stands_for_the_rest_has_a_word_before_it() -> None:
    assert wrapped("one two three …", 13) == ["one two", "three …"]
    assert wrapped("  one two …", 9) == ["  one", "  two …"]
    assert wrapped("incomprehensible …", 16) == ["incomprehensible", "…"]


def test_further_lines_stand_below_the_text() -> None:
    assert hanging("  tasks   one, two, three", 20) == "  tasks   one, two,\n          three"
    assert hanging("  a long label  one two", 20) == "  a long label  one\n      two"
    assert hanging("error: this is long", 12) == "error: this\n    is long"
    assert hanging("short", 12) == "short"
    # Of several labels, below what follows the last of them.
    watched = hanging("14:05Z  failed  the bank does not answer", 34)
    assert watched == "14:05Z  failed  the bank does not\n                answer"


def test_all_tables_are_drawn_by_one_class() -> None:
    folder = Path(headrace.cli.__path__[0])
    drawing = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"rich\.(table|columns)", path.read_text(encoding="utf-8"))
    }
    assert drawing == {"top/layout.py"}


def test_commands_keep_to_the_width_of_the_terminal(cli: Cli) -> None:
    columns = 80
    reason = "the mail server of this customer did not answer " * 4
    job_id = cli.enqueue("invoice.break", f"reason={reason}")
    cli.enqueue("invoice.send", "customer_id=123456789", "note=" + "many words " * 20)
    cli(
        "worker", "--app", "shop", "--exit-when-idle", "--name", "a-worker-with-a-long-name.example"
    )
    for arguments in (
        ["jobs", "list"],
        ["jobs", "show", job_id],
        ["jobs", "show", "nothing"],
        ["errors"],
        ["queues", "list"],
        ["workers"],
        ["doctor", "--app", "shop"],
    ):
        seen = ANSI.sub("", at_terminal(cli, *arguments, columns=columns)).splitlines()
        long = [
            line for line in seen if width(line) > columns and longest_word(line) < columns - 20
        ]
        assert not long, (arguments, long)
        # What is abbreviated says so, between words.
        assert not re.search(r"\w…", " ".join(seen)), seen
        assert "…" not in [line.strip() for line in seen], seen
    seen = ANSI.sub("", at_terminal(cli, "jobs", "show", job_id, columns=columns)).splitlines()
    told = " ".join(" ".join(seen[seen.index("Error") :]).split())
    assert told.startswith(f"Error RuntimeError: {reason.strip()}")


def test_what_was_asked_for_takes_no_line_of_its_own(cli: Cli) -> None:
    job_id = cli.enqueue("invoice.send", "customer_id=1")
    listing = ["jobs", "list", "--lane", "customer:1"]
    seen = ANSI.sub("", at_terminal(cli, *listing, columns=90)).splitlines()
    assert [line.split()[0] for line in seen] == ["ID", "─" * width(seen[1]), job_id]
    # Where there is room, and for programs, it is there.
    assert "customer:1" in at_terminal(cli, *listing, columns=120)
    assert "customer:1" in cli(*listing).out
    assert "customer:1" in at_terminal(cli, "jobs", "list", columns=90)
