"""Tasks whose handlers take chunks: how they are registered, enqueued and typed."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict, assert_type

import msgspec
import pydantic
import pytest

import headrace
from headrace import Job
from headrace.model.job import NewJob
from headrace.orchestrator.running.chunk_context import WorkerChunkJob
from headrace.server.openapi.bodies import task_view
from headrace.workflows.output_types import returned


@dataclasses.dataclass
class Row:
    sensor: str
    value: float = 0.5
    tags: list[str] = dataclasses.field(default_factory=list)


class Record(msgspec.Struct):
    sensor: str
    value: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    tags: list[str] = msgspec.field(default_factory=list)


class Entry(TypedDict):
    sensor: str
    value: NotRequired[float]
    tags: NotRequired[list[str]]


class Model(pydantic.BaseModel):
    sensor: str
    value: float = 0.5
    tags: list[str] = pydantic.Field(default_factory=list)

    @pydantic.field_validator("sensor")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value:
            raise ValueError("a sensor has a name")
        return value


class Vector(msgspec.Struct):
    x: int


def an_app() -> headrace.App:
    return headrace.App("sqlite://")


# --- registering


def refused(handler: Any, **options: Any) -> str:
    with pytest.raises(headrace.InvalidSetting) as raised:
        an_app().task("store", **options)(handler)
    return str(raised.value)


async def good(chunk: headrace.Chunk[Row]) -> None: ...


def test_a_handler_of_chunks_takes_a_chunk() -> None:
    async def of_one(sensor: str) -> None: ...

    async def untyped(chunk) -> None: ...  # type: ignore[no-untyped-def]

    async def bare(chunk: headrace.Chunk) -> None: ...  # type: ignore[type-arg]

    async def two(chunk: headrace.Chunk[Row], more: int) -> None: ...

    async def with_context(ctx: headrace.Context, chunk: headrace.Chunk[Row]) -> None: ...

    async def no_fields(chunk: headrace.Chunk[int]) -> None: ...

    for handler in (of_one, untyped, bare, two):
        assert "takes one headrace.Chunk[…]" in refused(handler, chunk=50), handler
    assert "stages, sleeps and waits belong to one job" in refused(with_context, chunk=50)
    assert "does not name arguments" in refused(no_fields, chunk=50)


def test_a_chunk_needs_its_size() -> None:
    assert "@app.task(chunk=50)" in refused(good)
    assert "chunk_wait needs chunk=" in refused(good, chunk_wait=1)
    assert "chunk_by needs chunk=" in refused(good, chunk_by="sensor")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"chunk": 0}, "from 1 to 1,000, got 0"),
        ({"chunk": 1_001}, "from 1 to 1,000, got 1001"),
        ({"chunk": True}, "got True"),
        ({"chunk": 2.5}, "got 2.5"),
        ({"chunk": 5, "chunk_wait": -1}, "between 0 and 600 seconds, got -1"),
        ({"chunk": 5, "chunk_wait": float("nan")}, "got nan"),
        ({"chunk": 5, "chunk_by": "colour"}, "a job takes sensor, value, tags; name one of them"),
        ({"chunk": 5, "chunk_by": 3}, 'the name of an argument, or "lane", got 3'),
        ({"chunk": 5, "isolate": "process"}, 'does not work with isolate="process"'),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], text: str) -> None:
    assert text in refused(good, **options)


class Laned(msgspec.Struct):
    lane: str


def test_an_argument_that_is_called_lane_is_ambiguous() -> None:
    async def store(chunk: headrace.Chunk[Laned]) -> None: ...

    assert "give the argument another name" in refused(store, chunk=5, chunk_by="lane")


def test_a_lane_reads_the_arguments_of_one_job() -> None:
    app = an_app()
    store = app.task("store", chunk=5, lane="sensor:{sensor}")(good)
    assert store.job(sensor="a").lane == "sensor:a"
    assert "reads ['colour']" in refused(good, chunk=5, lane="{colour}")
    # A value that is made anew for each cannot name a lane.
    made = app.task("made", chunk=5)(good)
    with pytest.raises(headrace.InvalidArguments, match="not an argument of the job"):
        made.options(lane="{tags}").job(sensor="a")


# --- enqueuing


async def of_row(chunk: headrace.Chunk[Row]) -> None: ...
async def of_record(chunk: headrace.Chunk[Record]) -> None: ...
async def of_entry(chunk: headrace.Chunk[Entry]) -> None: ...
async def of_model(chunk: headrace.Chunk[Model]) -> None: ...


@pytest.mark.parametrize(
    ("handler", "kind"),
    [(of_row, Row), (of_record, Record), (of_entry, Entry), (of_model, Model)],
)
def test_the_arguments_of_a_job_are_the_fields_of_a_class(handler: Any, kind: Any) -> None:
    task = an_app().task("store", chunk=5)(handler)
    by_name = task.job(sensor="a", value=2.0)
    assert msgspec.json.decode(by_name.args) == {"sensor": "a", "value": 2.0}
    as_one = task.job(kind(sensor="a", value=2.0, tags=["x"]))
    assert msgspec.json.decode(as_one.args) == {"sensor": "a", "value": 2.0, "tags": ["x"]}
    assert task.signature.decode(as_one.args) == kind(sensor="a", value=2.0, tags=["x"])
    # What is not given has the default of the class.
    assert task.signature.decode(b'{"sensor":"a"}') == kind(sensor="a")


@pytest.mark.parametrize("handler", [of_row, of_record, of_entry, of_model])
@pytest.mark.parametrize("wrong", [{}, {"sensor": 5}, {"sensor": "a", "colour": "red"}])
def test_arguments_are_checked_as_those_of_any_task(handler: Any, wrong: dict[str, Any]) -> None:
    app = an_app()
    app.task("store", chunk=5)(handler)
    with pytest.raises(headrace.InvalidArguments, match=r'task "store": .*it takes: sensor'):
        app.job("store", wrong)


def test_checks_of_the_class_are_made_when_a_job_is_enqueued() -> None:
    app = an_app()
    task = app.task("store", chunk=5)(of_model)
    with pytest.raises(headrace.InvalidArguments, match="a sensor has a name"):
        task.job(sensor="")
    record = app.task("record", chunk=5)(of_record)
    with pytest.raises(headrace.InvalidArguments, match=">= 0"):
        record.job(sensor="a", value=-1.0)


def test_the_arguments_are_described_as_those_of_any_task() -> None:
    view = task_view(an_app().task("store", chunk=5, chunk_by="sensor")(of_row))
    assert view.arguments["required"] == ["sensor"]
    assert view.arguments["properties"]["value"] == {"type": "number"}
    assert view.arguments["additionalProperties"] is False
    policy = view.policy
    assert (policy["chunk"], policy["chunk_wait"], policy["chunk_by"]) == (5, 0.2, "sensor")


# --- types: mypy checks this file


async def test_results_have_the_type_of_an_item() -> None:
    async with an_app() as app:

        @app.task(chunk=10)
        async def vectors(chunk: headrace.Chunk[Row]) -> list[Vector]:
            return [Vector(len(job.args.sensor)) for job in chunk]

        @app.task(chunk=10)
        def in_thread(chunk: headrace.Chunk[Row]) -> Sequence[Vector]:
            return [Vector(len(job.args.sensor)) for job in chunk]

        async def one(row: Row) -> Vector:
            if not row.sensor:
                raise ValueError("no sensor")
            return Vector(7)

        @app.task(chunk=10, retries=0)
        async def gathered(chunk: headrace.Chunk[Row]) -> list[Vector | BaseException]:
            return await asyncio.gather(*(one(job.args) for job in chunk), return_exceptions=True)

        @app.task(chunk=10)
        async def completed(chunk: headrace.Chunk[Row]) -> None:
            for job in chunk:
                job.complete({"x": job.args.value})

        first = await vectors.enqueue(Row("abc"))
        assert_type(first, Job[Vector])
        assert_type(vectors.job(sensor="a"), NewJob[Vector])
        second = await in_thread.enqueue(sensor="ab")
        third = await gathered.enqueue(Row("abc"))
        assert_type(third, Job[Vector])
        bad = await gathered.enqueue(Row(""))
        fourth = await completed.enqueue(Row("a", 2.5))
        assert_type(fourth, Job[Any])
        with pytest.raises(headrace.InvalidArguments):
            vectors.job(5)  # type: ignore[call-overload]
        await headrace.JobOrchestrator(app).run_until_idle()

        assert assert_type(await app.result(first, 5), Vector) == Vector(3)
        assert await app.result(second, 5) == Vector(2)
        assert await app.result(third, 5) == Vector(7)
        assert await app.result(fourth, 5) == {"x": 2.5}
        assert await app.result(first.id, 5) == {"x": 3}
        assert (await app.get(bad)).error == "no sensor"


async def test_children_and_workflows_know_the_type_as_well() -> None:
    async with an_app() as app:

        @app.task(chunk=10)
        async def vectors(chunk: headrace.Chunk[Row]) -> list[Vector]:
            return [Vector(len(job.args.sensor)) for job in chunk]

        @app.task
        async def total(ctx: headrace.Context) -> int:
            found = await ctx.gather([vectors.job(sensor="a" * n) for n in range(3)])
            return sum(each.x for each in found)

        job = await total.enqueue()
        await headrace.JobOrchestrator(app).run_until_idle()
        assert await app.result(job, 5) == 3
        assert returned(vectors) is Vector


def test_what_belongs_to_one_job_says_so() -> None:
    job: Any = WorkerChunkJob.__new__(WorkerChunkJob)
    with pytest.raises(AttributeError, match=r"'stage' belongs to a job that runs alone"):
        _ = job.stage
    with pytest.raises(AttributeError, match="has no 'colour'"):
        _ = job.colour
