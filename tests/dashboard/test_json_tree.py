"""JSON as a tree: any document, its text equal to it, escaped and bounded."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from headrace.server.dashboard.jobs.json_tree import (
    MOST_HTML,
    SHOWN_BYTES,
    TREE_BYTES,
    JsonDocument,
    exact,
    tree,
)
from headrace.task.redact import Redactor

HOSTILE = "</div><script>alert(1)</script>&amp;\"'`\u202e😀\x7f"
# The first documents are slow to make on a busy machine.
patient = settings(suppress_health_check=[HealthCheck.too_slow])
plain = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text()
    | some.just(HOSTILE)
)
documents = some.recursive(
    plain,
    lambda inner: some.lists(inner) | some.dictionaries(some.text() | some.just(HOSTILE), inner),
    max_leaves=25,
)


class Reader(HTMLParser):
    """The text of HTML, and its tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        assert all(name in {"class", "open", "data-count"} for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def same(one: Any, other: Any) -> bool:
    """Equal also in the kinds of numbers: 1 is not 1.0, and -0.0 not 0.0."""
    return repr(one) == repr(other)


@patient
@given(documents, some.booleans())
def test_the_text_of_a_tree_is_the_document(value: Any, ascii_only: bool) -> None:
    encoded = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        encoded.decode()
    except UnicodeDecodeError:
        return  # not JSON
    made = tree(encoded)
    assert made is not None
    found = Reader(str(made))
    assert not found.open
    assert set(found.tags) <= {"div", "details", "summary", "b", "i"}
    assert same(json.loads(found.text), value)
    str(made).encode()


@patient
@given(documents)
def test_the_text_of_a_form_is_the_document(value: Any) -> None:
    encoded = json.dumps(value).encode()
    assert same(json.loads(exact(encoded, Redactor(()))), value)


@patient
@given(some.binary(max_size=2_000) | documents.map(lambda each: json.dumps(each).encode()))
def test_whatever_there_is_becomes_bounded_html(encoded: bytes) -> None:
    made = JsonDocument(encoded)
    assert made.tree is None or len(str(made.tree).encode()) <= MOST_HTML + 1_000
    assert len(made.beginning.encode()) <= SHOWN_BYTES


@pytest.mark.parametrize(
    "written", ["9223372036854775807", "0.30000000000000004", "1e400", "1E+2", "-0.0", "1" * 400]
)
def test_numbers_are_shown_as_they_were_written(written: str) -> None:
    made = tree(f'{{"n": [{written}], "m": {written}}}'.encode())
    assert Reader(str(made)).text.count(written) == 2
    hidden = Redactor().json(f'{{"n": [{{"password": 1, "n": {written}}}]}}'.encode())
    assert written in hidden.decode()


@pytest.mark.parametrize(
    "encoded",
    [
        b"[" * 30_000 + b"]" * 30_000,
        b'{"a":' * 9_000 + b"1" + b"}" * 9_000,
        b"[" + b"[]," * 20_000 + b"1]",
        json.dumps(["<" * 60_000]).encode(),
        b"[" + b"1," * 30_000 + b"1]",
        json.dumps({str(each): each for each in range(5_000)}).encode(),
        b'"' + b"x" * TREE_BYTES + b'"',
    ],
)
def test_large_and_deep_documents_are_bounded(encoded: bytes) -> None:
    made = JsonDocument(encoded)
    html = str(made.tree or made.beginning)
    assert len(html.encode()) <= MOST_HTML + 1_000


def test_two_fields_of_one_name_are_both_shown() -> None:
    assert Reader(str(tree(b'{"a": 1, "a": 2}'))).text.count('"a"') == 2


@pytest.mark.parametrize("deep", [1, 40])
def test_hidden_values_are_hidden_at_any_depth(deep: int) -> None:
    encoded = b'{"a":[' * deep + b'{"PassWord": "hunter22", "n": 1e400}' + b"]}" * deep
    hidden = Redactor().json(encoded)
    assert b"hunter22" not in hidden
    assert b"1e400" in hidden
    assert Redactor().text("it was hunter22", encoded) == "it was [redacted]"
