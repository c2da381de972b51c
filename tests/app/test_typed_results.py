"""Results have types. mypy checks this file, and fails where one of them is not so."""

from __future__ import annotations

import dataclasses
from typing import Any, assert_type

import pytest

import headrace
from headrace import FailedChild, Job
from headrace.model.job import NewJob


@dataclasses.dataclass
class Point:
    x: int


def an_app() -> headrace.App:
    return headrace.App("sqlite://")


async def test_a_job_knows_what_its_task_returns() -> None:
    async with an_app() as app:

        @app.task
        async def double(n: int) -> int:
            return n * 2

        @app.task(queue="points")
        def point(ctx: headrace.Context, x: int) -> Point:
            return Point(x)

        first = await double.enqueue(21)
        second = await point.options(priority=5).enqueue(x=7)
        assert_type(first, Job[int])
        assert_type(second, Job[Point])
        assert_type(double.job(1), NewJob[int])
        assert_type(await app.enqueue(point.job(1)), Job[Point])
        assert_type(await app.enqueue("double", {"n": 1}), Job[Any])
        assert_type(await app.enqueue_many([double.job(1), double.job(2)]), list[Job[int]])
        await headrace.JobOrchestrator(app).run_until_idle()

        # By the job it is what the task returns, by its id plain JSON.
        assert assert_type(await app.result(first), int) == 42
        assert assert_type(await app.result(second, 5), Point) == Point(7)
        assert assert_type(await app.result(second.id), Any) == {"x": 7}
        assert assert_type(await app.get(second), Job[Point]).result == Point(7)
        assert assert_type((await app.get(second)).result, Point) == Point(7)
        assert assert_type(await app.get(second.id), Job[Any]).result == {"x": 7}


async def test_a_result_that_does_not_fit_is_an_error_that_says_so() -> None:
    async with an_app() as app:

        @app.task
        async def lies() -> int:
            return "not a number"  # type: ignore[return-value]

        job = await lies.enqueue()
        await headrace.JobOrchestrator(app).run_until_idle()
        with pytest.raises(headrace.InvalidInput, match=r"does not fit what task .*ask for it by"):
            await app.result(job)
        assert await app.result(job.id) == "not a number"


async def test_gathered_results_are_of_the_type_of_their_task() -> None:
    async with an_app() as app:

        @app.task
        async def point(x: int) -> Point:
            return Point(x)

        @app.task
        async def total(ctx: headrace.Context) -> int:
            found = await ctx.gather([point.job(x) for x in range(3)])
            assert_type(found, list[Point])
            collected = await ctx.gather([point.job(9)], on_failure="collect")
            assert_type(collected, list[Point | FailedChild])
            ids = await ctx.spawn([point.job(1)])
            assert_type(await ctx.gather(ids), list[Any])
            return sum(each.x for each in found)

        job = await total.enqueue()
        await headrace.JobOrchestrator(app).run_until_idle()
        assert await app.result(job) == 3


async def test_direct_calls_have_the_types_of_the_function() -> None:
    app = an_app()

    @app.task
    def plain(n: int) -> str:
        return str(n)

    @app.task
    async def later(n: int) -> str:
        return str(n)

    @app.task(queue="q")
    async def with_context(ctx: headrace.Context, n: int) -> str:
        return str(n)

    @app.task("named")
    def thread(ctx: headrace.Context, n: int) -> str:
        return str(n)

    assert assert_type(plain(1), str) == "1"
    assert assert_type(await later(1), str) == "1"
    context: headrace.Context = None  # type: ignore[assignment]
    assert assert_type(await with_context(context, 1), str) == "1"
    assert assert_type(thread(context, n=1), str) == "1"
    # Each of these is an error to the checker, or it would say that nothing is to be ignored.
    assert plain("1") == "1"  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        plain()  # type: ignore[call-arg]
    with pytest.raises(headrace.InvalidArguments):
        with_context.job("x")  # type: ignore[arg-type]


async def test_any_of_them_is_a_task_and_any_job_a_job() -> None:
    app = an_app()

    @app.task
    async def double(n: int) -> int:
        return n * 2

    # Without a parameter, as programs before had it.
    task: headrace.Task[..., Any] = double
    exact: headrace.Task[[int], int] = double
    job: Job = await task.enqueue(1)
    wide: Job[object] = await exact.enqueue(1)
    assert {type(job), type(wide)} == {Job}
    await app.close()


async def test_a_job_has_a_short_repr_and_the_names_of_its_json() -> None:
    async with an_app() as app:

        @app.task(retries=0)
        async def breaks(text: str) -> None:
            raise ValueError(text)

        job = await breaks.options(key="once").enqueue("long " * 500)
        assert repr(job) == f"<Job {job.id} task='breaks' pending key='once'>"
        await headrace.JobOrchestrator(app).run_until_idle()
        job = await app.get(job)
        assert repr(job).startswith(f"<Job {job.id} task='breaks' failed key='once' error='long ")
        assert len(repr(job)) < 250
        shown = job.to_dict()
        assert (job.job_id, job.error_message) == (shown["job_id"], shown["error_message"])
        assert (job.job_id, job.error_message) == (job.id, job.error)
