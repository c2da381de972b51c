"""Documents: values with their lines, from YAML and from JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config_files import BadDocument, Document, NoDocument, dotted, read_document


def read(folder: Path, content: str, name: str = "file.yaml") -> Document:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return read_document(path)


def test_lines_of_names_and_values(tmp_path: Path) -> None:
    found = read(tmp_path, "a:\n  b:\n    - c\n    -\n      d: no\n")
    assert found.value == {"a": {"b": ["c", {"d": "no"}]}}
    assert [found.line(place) for place in [(), ("a",), ("a", "b"), ("a", "b", 0)]] == [1, 1, 2, 3]
    assert found.at(("a", "b", 1, "d")).endswith("file.yaml line 5")
    assert found.value_at(("a",)).endswith("file.yaml line 2")
    assert found.value_at(("a", "b")).endswith("file.yaml line 3")
    # What is not there is told with the line of what should have it.
    assert found.line(("a", "b", 1, "e", "f")) == 5


def test_what_is_merged_has_the_line_where_it_stands(tmp_path: Path) -> None:
    found = read(tmp_path, "a: &a\n  x: 1\n  y: 2\nb:\n  <<: *a\n  x: 'no'\n")
    assert found.value == {"a": {"x": 1, "y": 2}, "b": {"x": "no", "y": 2}}
    assert (found.line(("b", "x")), found.line(("b", "y"))) == (6, 3)


def test_nothing_is_no_value(tmp_path: Path) -> None:
    for content in ("", "\n", "# nothing\n", "---\n", "null\n", "\ufeff"):
        assert read(tmp_path, content).value is None


def test_json_is_read_as_json(tmp_path: Path) -> None:
    content = '{\n\t"on": 1e3,\n\t"no": "\\ud83d\\ude00 2026-01-01 \u2028",\n\t"<<": [\n7]}'
    found = read(tmp_path, content, "file.json")
    assert found.value == {"on": 1000.0, "no": "😀 2026-01-01 \u2028", "<<": [7]}
    assert [found.line((name,)) for name in ("on", "no")] == [2, 3]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "line 1 is not valid JSON: Expecting value (column 1)"),
        ('{"a": 1,\n}', "line "),
        ("a: 1", "line 1 is not valid JSON"),
        ('{"a": NaN}', "is not valid JSON: NaN is not a JSON value"),
        ('{"a": 1e999}', "is not valid JSON: 1e999 is not a JSON value"),
        ('{"a": 1,\n "a": 2}', 'line 2: the file has "a" twice, first in line 1; keep one'),
        ('{"a": "\\ud800"}', "line 1: a has half a character"),
        ("[" * 100_000, "is not valid JSON: "),
        ('["' + "[" * 120 + '"', "line 1 is not valid JSON"),
        ("[" * 120 + "]" * 120, "line 1: [0][0] is nested more than 100 deep"),
    ],
)
def test_what_is_wrong_with_json(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(BadDocument) as refused:
        read(tmp_path, content, "file.json")
    assert f"file.json {reason}" in str(refused.value)


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(NoDocument, match=r"cannot read '.*none\.yaml': there is no such file"):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(BadDocument, match="Is a directory"):
        read_document(tmp_path)


def test_a_place_as_people_write_it() -> None:
    assert dotted(("steps", 0, "params", "url")) == "steps[0].params.url"
    assert dotted((0, 1)) == "[0][1]"
    assert dotted(()) == ""
