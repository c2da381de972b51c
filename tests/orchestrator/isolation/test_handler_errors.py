"""Errors look the same as if the handler had run in the worker."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from headrace.errors import ParserError, RetryLater, Snooze
from headrace.model.retry import retryable
from headrace.orchestrator.isolation import ProcessPool, RemoteError
from tests.orchestrator.isolation import handlers
from tests.orchestrator.isolation.conftest import Run, a_pool

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ProcessPool]:
    """One for all: starting a process takes a while."""
    async with a_pool() as pool:
        yield pool


@pytest.mark.parametrize(
    ("kind", "name", "message", "expected"),
    [
        ("value", "ValueError", "not a good value", (ValueError, True)),
        ("parser", "ParserError", "page 3 is torn", (ParserError, False)),
        ("own", "BadDocument", "no such page", (handlers.BadDocument, False)),
        ("peculiar", "Peculiar", "peculiar 7 in the middle", (handlers.Peculiar, True)),
        ("pydantic", "ValidationError", "Input should be a valid string", (ValueError, False)),
        ("key", "KeyError", "'missing'", (KeyError, True)),
        ("exit", "SystemExit", "enough", (RemoteError, True)),
        ("cancelled", "CancelledError", "by itself", (RemoteError, True)),
        ("group", "ExceptionGroup", "several", (RemoteError, True)),
        ("cause", "RuntimeError", "cannot go on", (RuntimeError, True)),
        ("local", "Local", "unknown elsewhere", (LookupError, True)),
        ("surrogate", "ValueError", "half a character: ?", (ValueError, True)),
        ("unicode", "UnicodeDecodeError", "can't decode byte 0xff", (UnicodeDecodeError, True)),
    ],
)
async def test_an_error_keeps_name_text_ancestry_and_traceback(
    run: Run, kind: str, name: str, message: str, expected: tuple[type[Exception], bool]
) -> None:
    base, may_retry = expected
    with pytest.raises(base) as raised:
        await run(handlers.fail, kind=kind)
    error = raised.value
    assert isinstance(error, RemoteError)
    assert isinstance(error, Exception)
    assert type(error).__name__ == name
    assert message in str(error)
    assert retryable(error) is may_retry
    assert error.remote_traceback in "".join(traceback.format_exception(error))
    assert "handlers.py" in error.remote_traceback
    assert "isolation/child" not in error.remote_traceback, "our own frames are left out"
    assert await run(handlers.add, a=1) == 3, "the process is as good as before"


async def test_classes_in_never_retry_are_recognised(run: Run) -> None:
    with pytest.raises(handlers.Peculiar) as raised:
        await run(handlers.fail, kind="peculiar")
    assert not retryable(raised.value, (handlers.Peculiar,))
    assert not retryable(raised.value, ("Peculiar",))
    with pytest.raises(LookupError) as raised_locally:
        await run(handlers.fail, kind="local")
    assert not retryable(raised_locally.value, ("Local",))
    assert retryable(raised_locally.value, ("HeadraceError",))


async def test_a_cause_is_told(run: Run) -> None:
    with pytest.raises(RuntimeError) as raised:
        await run(handlers.fail, kind="cause")
    text = "".join(traceback.format_exception(raised.value))
    assert "/nowhere/at/all" in text
    assert "direct cause" in text


async def test_retry_later_and_snooze_travel_as_themselves(run: Run) -> None:
    with pytest.raises(RetryLater, match="the service sleeps") as later:
        await run(handlers.later)
    assert type(later.value) is RetryLater
    assert later.value.at == datetime(2030, 1, 2, tzinfo=UTC)
    assert later.value.delay is None
    with pytest.raises(Snooze, match="not yet") as snooze:
        await run(handlers.snooze)
    assert type(snooze.value) is Snooze
    assert snooze.value.delay == 90
