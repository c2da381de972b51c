"""A stage's result has the type in later attempts that it had when it was made."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from pydantic import BaseModel

import headrace
from headrace.model.status import Status
from headrace.orchestrator.durable.stage_call import encode_value
from tests.orchestrator.conftest import Worker

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]


class Price(msgspec.Struct):
    amount: int


@dataclass
class Size:
    width: float


class Model(BaseModel):
    name: str


class Point(NamedTuple):
    x: int
    y: int


class Colour(enum.Enum):
    RED = "red"


class Made:
    """A callable object: what it returns is said where it is called."""

    def __call__(self) -> Price:
        return Price(3)

    def method(self) -> list[Size]:
        return [Size(1.5)]


def hidden() -> Missing:
    return Price(3)


def unsaid(value: Any):  # type: ignore[no-untyped-def]
    return value


def loosely(value: Any) -> Any:
    return value


def pair() -> tuple[int, str]:
    return 1, "a"


def numbers() -> dict[int, set[int]]:
    return {1: {2, 3}}


def whole() -> float:
    return 3


KEPT: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (Price, (3,), Price(3)),
    (Size, (1.5,), Size(1.5)),
    (Made(), (), Price(3)),
    (Made().method, (), [Size(1.5)]),
    (pair, (), (1, "a")),
    (numbers, (), {1: {2, 3}}),
    (whole, (), 3),
    (unsaid, ({"a": [1, None, 2.5, True, "x"]},), {"a": [1, None, 2.5, True, "x"]}),
    # JSON has one kind of list, and no name for what is not a number: known, and harmless.
    (unsaid, ((1, (2, 3)),), [1, [2, 3]]),
]

CHANGED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (hidden, (), "Price as dict"),
    (unsaid, (Price(3),), "Price as dict"),
    (loosely, (Size(1.5),), "Size as dict"),
    (unsaid, ([Price(3)],), "Price as dict"),
    (unsaid, ({"a": (1, Model(name="b"))},), "Model as dict"),
    (unsaid, (Point(1, 2),), "Point as list"),
    (unsaid, ({1, 2},), "set as list"),
    (unsaid, ({1: "a"},), "int as str"),
    (unsaid, (datetime(2030, 1, 1, tzinfo=UTC),), "datetime as str"),
    (unsaid, (Colour.RED,), "Colour as str"),
    (unsaid, (b"bytes",), "bytes as str"),
]


@pytest.mark.parametrize(("function", "given", "expected"), KEPT)
async def test_a_kept_result_comes_back_as_it_was(
    local: headrace.App,
    worker: Worker,
    function: Callable[..., Any],
    given: tuple[Any, ...],
    expected: Any,
) -> None:
    seen: list[Any] = []

    @local.task
    async def twice(ctx: headrace.Context) -> None:
        seen.append(await ctx.stage("one", function, *given))
        if ctx.attempt == 1:
            raise OSError("again")

    job = await twice.enqueue()
    await worker(local).run_until_idle()
    local.clock.advance(5)
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.attempt) == (Status.COMPLETED, 2), over.error
    assert seen[1] == expected


@pytest.mark.parametrize(("function", "given", "told"), CHANGED)
async def test_a_result_that_would_come_back_as_something_else_is_refused_at_once(
    local: headrace.App,
    worker: Worker,
    function: Callable[..., Any],
    given: tuple[Any, ...],
    told: str,
) -> None:
    @local.task
    async def once(ctx: headrace.Context) -> None:
        await ctx.stage("one", function, *given)

    job = await once.enqueue()
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.attempt) == (Status.FAILED, 1)
    assert f"stage 'one': a later attempt would get {told}" in (over.error or "")
    assert "annotate" in (over.error or "")


async def test_a_result_that_its_annotation_does_not_fit_is_refused_at_once(
    local: headrace.App, worker: Worker
) -> None:
    def wrong() -> Price:
        return {"amount": "many"}  # type: ignore[return-value]

    @local.task
    async def once(ctx: headrace.Context) -> None:
        await ctx.stage("one", wrong)

    job = await once.enqueue()
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.attempt) == (Status.FAILED, 1)
    assert "stage 'one' returned what does not fit its annotation" in (over.error or "")


def test_plain_values_are_not_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most stages return these: they cost nothing more."""
    monkeypatch.setattr("headrace.orchestrator.durable.stage_call.decoder_of", None)
    for value in (None, True, 3, 2.5, "text"):
        encode_value("one", value, unsaid)
