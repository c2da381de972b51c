"""Fingerprints of errors: equal for failures with one cause, and equal for ever."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.fingerprint import LOOKED_AT, NORMALISED_LIMIT, fingerprint, normalised
from headrace.model.outcome import MESSAGE_LIMIT
from headrace.orchestrator.settling.attempt_log import describe_failure

# What is on the left was written by programs; what is on the right is stored as a fingerprint, so
# a line of this table is never changed.
EXAMPLES = {
    "Order 4711 not found": "Order <number> not found",
    "Expected 3 rows, got 12,345": "Expected <number> rows, got <number>",
    "temperature -3.5e-7": "temperature <number>",
    "could not connect to 10.0.0.7:5432 after 3.5 s": (
        "could not connect to <number> after <number> s"
    ),
    "line 4, column 17": "line <number>, column <number>",
    "order_12345 and order-99": "order_<number> and order-<number>",
    "user 'anna' may not": "user '…' may not",
    "'missing'": "'…'",
    'unknown field "a b"': 'unknown field "…"',
    "no column `x`": "no column `…`",
    "bad bytes b'\\x00abc'": "bad bytes '…'",
    "{'a': 1, 'b': [2, 3]}": "{'…': <number>, '…': [<number>, <number>]}",
    "can't open 'x' for the users' list": "can't open '…' for the users' list",
    "<Customer object at 0x7f3a2b10>": "<Customer object at <hex>>",
    "f47ac10b-58cc-4372-a567-0e02b2c3d479 missing": "<uuid> missing",
    "job 01J8ZKX4T7Q2M3N5P6R7S8T9V0 lost": "job <id> lost",
    "commit a1b2c3d is broken": "commit <id> is broken",
    "timeout at 2026-11-17T09:04:45.123Z": "timeout at <time>",
    "timeout at 2026-11-17 09:04:45+00:00": "timeout at <time>",
    "nothing on 2026-11-17": "nothing on <time>",
    "mail to anna.b+x@example.org bounced": "mail to <email> bounced",
    "[Errno 2] No such file or directory: '/tmp/tmpab12cdef/x.csv'": (
        "[Errno <number>] No such file or directory: '…'"
    ),
    "cannot read /var/data/customer-42/in.csv: gone": "cannot read /var/data/<name>/in.csv: gone",
    "cannot write /tmp/tmpabcdefgh/out.csv": "cannot write /tmp/<name>/out.csv",
    "C:\\Users\\bob7\\file.txt": "C:\\Users\\<name>\\file.txt",
    "https://example.org/orders/77?token=abc&x=1 answered 503": (
        "https://example.org/orders/<name>?… answered <number>"
    ),
    "two\n\n  lines\tand more ": "two lines and more",
    "": "",
}


@pytest.mark.parametrize("message", EXAMPLES)
def test_variable_parts_are_replaced(message: str) -> None:
    assert normalised(message) == EXAMPLES[message]


def test_fingerprints_are_the_same_in_every_version() -> None:
    assert fingerprint("KeyError", "'missing'") == "0d7aa4a6c7153873"
    assert fingerprint("OrderMissing", "Order 4711 not found") == "267e9699f4dcbc52"


def test_failures_with_one_cause_share_a_fingerprint_and_others_do_not() -> None:
    one = fingerprint("OrderMissing", "Order 4711 not found")
    assert one == fingerprint("OrderMissing", "Order 8 not found")
    assert one != fingerprint("LookupError", "Order 8 not found")
    assert one != fingerprint("OrderMissing", "Order 8 not paid")
    assert one != fingerprint("OrderMissing\nOrder", "<number> not found")


def test_a_stored_message_has_the_fingerprint_of_its_error() -> None:
    for message in ("x " * MESSAGE_LIMIT, f"bad value '{'y' * 9_000}' here", "a\0b \ud800 'c'"):
        stored = describe_failure(ValueError(message))
        assert fingerprint("ValueError", message) == fingerprint(stored.type, stored.message)


def test_a_quote_whose_end_is_too_far_away_is_replaced_as_well() -> None:
    assert normalised(f"bad value '{'y' * 9_000}' here") == "bad value '…'"
    assert normalised(f"bad value '{'z' * 2_500}'") == "bad value '…'"


@pytest.mark.parametrize(
    "piece",
    ["'", '"', "a.b", "@", "1", "/a", "\"'", "0x", "1.1,1:", "2026-11-17 ", "-", "a?"],
)
def test_hostile_messages_are_cut_first(piece: str) -> None:
    # With the whole message, or with a pattern that tries again, this would take minutes.
    message = piece * (10_000_000 // len(piece))
    assert fingerprint("E", message) == fingerprint("E", message[: LOOKED_AT + 1])
    assert len(normalised(message)) <= NORMALISED_LIMIT


@given(st.text(alphabet=st.characters(), max_size=300), st.text(max_size=20))
def test_any_text_has_a_fingerprint(message: str, error_type: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", fingerprint(error_type, message))
    assert len(normalised(message)) <= NORMALISED_LIMIT


_WORDS = st.lists(st.sampled_from(["order", "of", "customer", "failed", "while", "reading"]))


@given(_WORDS, st.integers(), st.integers(), st.uuids(), st.uuids())
def test_numbers_and_uuids_make_no_difference(
    words: list[str], one: int, two: int, first: object, second: object
) -> None:
    text = " ".join(words)
    left = fingerprint("E", f"{text} {one} {first} '{one}'")
    assert left == fingerprint("E", f"{text} {two} {second} '{two}'")


@given(st.text(alphabet="abcdefgh '\"/\\0123456789.-", max_size=100))
def test_words_without_digits_or_quotes_are_kept(noise: str) -> None:
    assert normalised(f"cause: {noise}").startswith("cause:")
