"""Hints for names that were mistyped."""

from __future__ import annotations

from headrace.suggest import did_you_mean, nearest, similar_or_first, unknown

KNOWN = ["queues", "workers", "lanes"]


def test_the_nearest_name_is_suggested() -> None:
    assert did_you_mean("qeues", KNOWN) == 'did you mean "queues"?'


def test_names_that_are_known_are_listed_if_none_is_similar() -> None:
    assert did_you_mean("zzz", KNOWN) == "known: lanes, queues, workers"
    assert did_you_mean("zzz", []) == "there are none"


def test_a_caller_may_say_something_else_instead() -> None:
    assert did_you_mean("zzz", KNOWN, otherwise="use the other one") == "use the other one"


def test_an_unknown_name_is_told_with_its_kind() -> None:
    assert unknown("queue", "qeues", KNOWN) == 'unknown queue "qeues"; did you mean "queues"?'


def test_similar_names_come_before_the_first_ones() -> None:
    assert similar_or_first("worker", KNOWN) == '"workers"'
    assert similar_or_first("zzz", KNOWN, first=2) == '"lanes", "queues"'
    assert similar_or_first("zzz", []) == "none"


def test_nearest_is_bounded() -> None:
    assert nearest("aa", ["aab", "aac", "aad", "aae"], count=2) == ["aae", "aad"]
