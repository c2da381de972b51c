"""What JSON would change silently is refused: NaN, infinity, and keys that are equal as text."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pydantic
import pytest

import headrace
from headrace.errors import InvalidArguments, InvalidSetting
from headrace.task.codec import encode_exact

NAN, INFINITY = float("nan"), float("inf")


@dataclasses.dataclass
class Point:
    x: float
    note: str | None = None


class Prices(msgspec.Struct):
    low: float
    by_year: dict[Any, int] = {}


class Wrapped(msgspec.Struct):
    body: msgspec.Raw


class Score(pydantic.BaseModel):
    value: float


CHANGED = [
    (NAN, r"no NaN, it would become null$"),
    ({"a": {"b": [1.0, INFINITY]}}, r"no infinity, it would become null \(at a\.b\[1\]\)"),
    ([None, Point(-INFINITY)], r"no infinity.*\(at \[1\]\.x\)"),
    (Score(value=NAN), r"no NaN.*\(at value\)"),
    (Prices(1.0, {2024: 1, "2024": 2}), 'two keys are "2024" as text, so one would be lost'),
    ([{"deep": {1: "a", "1": "b"}}], 'two keys are "1"'),
]
KEPT = [
    [Wrapped(msgspec.Raw(b"null")), None],
    None,
    {"a": None, "b": [None, 1.5]},
    {"NaN": "null", "x": "{"},
    {1: "a", 2: "b"},
    Point(1.0),
    Prices(1.0, {2024: 1}),
    Score(value=2.0),
    {"large": 2**70, "raw": msgspec.Raw(b'{ "a" : null }')},
]


@pytest.mark.parametrize(("value", "words"), CHANGED, ids=range(len(CHANGED)))
def test_a_value_that_would_change_is_refused(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        encode_exact(value)


@pytest.mark.parametrize("value", KEPT, ids=range(len(KEPT)))
def test_every_other_value_is_kept(value: Any) -> None:
    msgspec.json.decode(encode_exact(value))


async def test_a_result_that_would_change_fails_its_job() -> None:
    async with headrace.App("sqlite://") as app:

        @app.task
        async def on_the_loop() -> float:
            return NAN

        @app.task
        def in_a_thread() -> dict[Any, str]:
            return {1: "a", "1": "b"}

        @app.task(retries=0)
        async def in_a_stage(ctx: headrace.Context) -> None:
            await ctx.stage("mean", lambda: NAN)

        jobs = [await task.enqueue() for task in (on_the_loop, in_a_thread, in_a_stage)]
        await headrace.JobOrchestrator(app).run_until_idle()
        ended = [await app.get(job.id) for job in jobs]
        assert [job.status for job in ended] == ["failed"] * 3
        assert [(job.error or "").partition(": ")[2] for job in ended] == [
            "JSON has no NaN, it would become null; return plain data",
            'two keys are "1" as text, so one would be lost; return plain data',
            "JSON has no NaN, it would become null; return plain data",
        ]
        assert [job.attempt for job in ended] == [1, 1, 1]


async def test_what_goes_in_is_refused_as_well() -> None:
    async with headrace.App("sqlite://") as app:

        @app.task
        async def work(value: Any) -> None: ...

        for value in (NAN, {"a": {1: 1, "1": 2}}):
            with pytest.raises(InvalidArguments, match="would"):
                work.job(value)
            with pytest.raises(InvalidArguments, match="would"):
                app.job("work", {"value": value})
            with pytest.raises(InvalidSetting, match="would"):
                work.options(meta={"value": value})
        job = await work.enqueue(1)
        with pytest.raises(InvalidArguments, match="NaN"):
            await app.signal(job.id, "paid", NAN)
