"""Describing errors and rebuilding them, without a process in between."""

from __future__ import annotations

from headrace.errors import NotRetryable, PayloadTooLarge
from headrace.orchestrator.isolation.error_transport import describe, rebuild
from tests.orchestrator.isolation import handlers


def test_an_error_may_travel_twice() -> None:
    twice = rebuild(describe(rebuild(describe(handlers.BadDocument("gone")))))
    assert type(twice).__name__ == "BadDocument"
    assert isinstance(twice, handlers.BadDocument)
    assert isinstance(twice, NotRetryable)
    assert str(twice) == "gone"


def test_an_error_that_cannot_be_shown_is_told_all_the_same() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    error = rebuild(describe(Broken()))
    assert type(error).__name__ == "Broken"
    assert "cannot be shown" in str(error)


def test_a_class_that_cannot_be_made_gives_way_to_its_ancestor() -> None:
    error = rebuild(describe(FinalError("closed")))
    assert type(error).__name__ == "FinalError"
    assert isinstance(error, ArithmeticError)
    assert not isinstance(error, FinalError)


def test_an_error_for_good_stays_one_whatever_its_class() -> None:
    error = rebuild(describe(PayloadTooLarge("20 bytes"), retryable=False))
    assert isinstance(error, PayloadTooLarge)
    assert isinstance(error, NotRetryable)
    assert (type(error).__name__, str(error)) == ("PayloadTooLarge", "20 bytes")
    assert not isinstance(rebuild(describe(PayloadTooLarge("20 bytes"))), NotRetryable)


class FinalError(ArithmeticError):
    def __init_subclass__(cls) -> None:
        raise TypeError("no children, please")
