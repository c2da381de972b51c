"""Jobs that make other jobs: children, workflows, events; each on every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
from headrace.model.job import Job, JobFilter
from headrace.model.sealed import SEALED_ERROR, key_of_args
from headrace.model.status import Status
from tests.encryption.conftest import K2, Make, Worker

MARKER = "4111-1111"


async def stored_of(app: headrace.App, *jobs: Job) -> str:
    """Return all that the engine has of jobs, as one text."""
    found = []
    for job in jobs:
        [whole] = await app.engine.get([job.id])
        found += [
            whole.args_json,
            whole.result_json or b"",
            whole.log,
            (whole.error or "").encode(),
        ]
        found += [entry.body for entry in await app.engine.entries(job.id)]
    return b"\n".join(found).decode()


async def children_of(app: headrace.App, job: Job) -> list[Job]:
    return (await app.list(JobFilter(parent=job.id))).jobs


async def test_children_and_their_results(url: str, make: Make, worker: Worker) -> None:
    app = make(url)
    pay = app.tasks["pay"]

    @app.task("parent", encrypt=True)
    async def parent(ctx: headrace.Context, card: str) -> list[Any]:
        return await ctx.gather([pay.job(card=card, amount=number) for number in range(3)])

    job = await parent.enqueue(card=MARKER)
    await worker(app).run_until_idle()
    assert [each["card"] for each in await app.result(job)] == [MARKER] * 3
    children = await children_of(app, job)
    assert len(children) == 3
    assert MARKER not in await stored_of(app, job, *children)


async def test_a_plain_parent_is_told_no_text_of_a_sealed_error(
    here: str, make: Make, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be stored in plain with the parent's own error."""
    app = make(here)

    @app.task("broken", encrypt=True, retries=0)
    async def broken(card: str) -> None:
        raise ValueError(f"declined {card}")

    async def gathers(ctx: headrace.Context) -> None:
        await ctx.gather([broken.job(card=MARKER)])

    app.task("plain-parent", retries=0)(gathers)
    app.task("sealed-parent", retries=0, encrypt=True)(gathers)
    plain = await app.enqueue("plain-parent")
    sealed = await app.enqueue("sealed-parent")
    await worker(app).run_until_idle()
    for job in (plain, sealed):
        assert (await app.get(job)).error_type == "ChildFailed"
        assert MARKER not in await stored_of(app, job, *await children_of(app, job))
    assert MARKER not in caplog.text
    assert SEALED_ERROR in ((await app.get(plain)).error or "")
    assert f"declined {MARKER}" in ((await app.get(sealed)).error_message or "")


async def test_a_result_that_only_looks_sealed_is_what_it_is(
    here: str, make: Make, worker: Worker
) -> None:
    """Otherwise whoever chooses what a plain job returns could break those that read it."""
    app = make(here)
    looks = {"$sealed": {"key": "k9", "data": "AAAA"}}

    @app.task("echo")
    async def echo() -> dict[str, Any]:
        return looks

    @app.task("parent")
    async def parent(ctx: headrace.Context) -> list[Any]:
        return await ctx.gather([echo.job()])

    job = await parent.enqueue()
    await worker(app).run_until_idle()
    assert await app.result(job) == [looks]
    [child] = await children_of(app, job)
    assert await app.result(child.id) == looks


async def test_stages_that_an_earlier_attempt_has_sealed(
    url: str, make: Make, worker: Worker
) -> None:
    app = make(url, payload_limit=2_000)
    ran: list[str] = []

    def made(text: str) -> list[str]:
        ran.append(text)
        return [text] * 300

    @app.task("steps", encrypt=True, retry=headrace.RetryPolicy(retries=2, base=0.01))
    async def steps(ctx: headrace.Context) -> int:
        short = await ctx.stage("short", str, MARKER)
        long: list[str] = await ctx.stage("long", made, MARKER)
        if ctx.attempt == 1:
            raise RuntimeError("once more")
        return len(long) if short == MARKER and set(long) == {MARKER} else 0

    job = await steps.enqueue()
    await worker(app).start()
    assert await app.result(job, timeout=60) == 300
    assert ran == [MARKER]
    assert MARKER not in await stored_of(app, job)


async def test_runs_of_workflows(url: str, make: Make, worker: Worker) -> None:
    app = make(url)
    pay, plain = app.tasks["pay"], app.tasks["plain"]
    orders = app.workflow("orders", params={"card": str})
    first = orders.step("pay", pay, {"card": orders.params.card})
    orders.step("note", plain, {"text": first.output.card})
    run = await app.workflows.run("orders", {"card": MARKER})
    await worker(app).run_until_idle()
    done = await app.get(run)
    assert done.status is Status.COMPLETED, done.error_message
    assert done.result == {"note": MARKER}
    # The task of the other step is not encrypted: what it is given is plain, as it says.
    [paid] = [job for job in await children_of(app, run) if job.task == "pay"]
    assert MARKER not in await stored_of(app, run, paid)
    # How far it is can be seen without keys.
    seen = make(url, None)
    seen.workflows.define("orders")
    view = await seen.workflows.look(await seen.get(run.id))
    assert [(step.id, step.status) for step in view.steps] == [
        ("pay", "completed"),
        ("note", "completed"),
    ]
    assert view.params == {"$sealed": {"key": "k1", "bytes": view.params["$sealed"]["bytes"]}}
    assert MARKER not in str(view)
    opened = await app.workflows.look(await app.get(run))
    assert opened.params == {"card": MARKER}
    assert opened.steps[0].output["card"] == MARKER


async def test_a_failed_run_is_begun_again(here: str, make: Make, worker: Worker) -> None:
    app = make(here)
    fails = [True]

    @app.task("flaky", encrypt=True, retries=0)
    async def flaky(card: str) -> str:
        if fails.pop() if fails else False:
            raise ValueError(f"declined {card}")
        return card

    orders = app.workflow("orders", params={"card": str})
    first = orders.step("first", app.tasks["pay"], {"card": orders.params.card})
    orders.step("second", flaky, {"card": first.output.card})
    run = await app.workflows.run("orders", {"card": MARKER})
    await worker(app).run_until_idle()
    assert (await app.get(run)).status is Status.FAILED
    assert MARKER not in await stored_of(app, run)
    without = make(here, None)
    await without.retry(run.id)  # no keys are needed for that
    await worker(app).run_until_idle()
    assert await app.result(run) == {"second": MARKER}


async def test_large_outputs_of_runs(here: str, make: Make, worker: Worker, tmp_path: Path) -> None:
    app = make(here, payload_limit=3_000)

    @app.task("many", encrypt=True)
    async def many(card: str) -> list[str]:
        return [card] * 200

    orders = app.workflow("orders", params={"card": str})
    orders.step("one", many, {"card": orders.params.card})
    orders.step("two", many, {"card": orders.params.card})
    run = await app.workflows.run("orders", {"card": MARKER})
    await worker(app).run_until_idle()
    done = await app.get(run)
    assert await app.workflows.output(done) == {"one": [MARKER] * 200, "two": [MARKER] * 200}
    files = [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if MARKER.encode() in path.read_bytes()]


async def test_a_run_needs_keys_to_begin(here: str, make: Make) -> None:
    app = make(here, None)
    orders = app.workflow("orders", params={"card": str})
    orders.step("pay", app.tasks["pay"], {"card": orders.params.card})
    with pytest.raises(headrace.MissingEncryptionKey, match=r'workflow "orders".*task "pay"'):
        await app.workflows.run("orders", {"card": MARKER})
    assert not (await app.list()).jobs
    seen = make(here)
    lanes = seen.workflow("orders", params={"card": str}, lane="card:{card}")
    lanes.step("pay", seen.tasks["pay"], {"card": lanes.params.card})
    with pytest.raises(headrace.InvalidInput, match="would store card in plain"):
        await seen.workflows.run("orders", {"card": MARKER})


class Paid(msgspec.Struct):
    """What is published."""

    card: str


async def test_events_that_a_sealed_job_publishes(here: str, make: Make, worker: Worker) -> None:
    app = make(here, allow_private_webhooks=True)
    app.event_type("paid.v1", Paid)
    await app.put_destination("nobody", "webhook", {"url": "http://127.0.0.1:9/"}, retries=0)

    async def publishes(ctx: headrace.Context, card: str) -> None:
        ctx.publish("paid.v1", Paid(card))

    app.task("sealed", encrypt=True)(publishes)
    app.task("open")(publishes)
    for task, sealed in (("sealed", True), ("open", False)):
        await app.enqueue(task, {"card": MARKER})
        await worker(app).run_until_idle()
        for built_in in ("headrace.publish", "headrace.deliver"):
            [job, *_] = (await app.list(JobFilter(tasks=(built_in,)))).jobs
            assert (key_of_args(job.args_json) == "k1") is sealed
            assert (MARKER in await stored_of(app, job)) is not sealed


async def test_a_worker_without_the_key_leaves_published_events_too(
    here: str, make: Make, worker: Worker
) -> None:
    app, other = make(here), make(here, f"k2:{K2}")
    app.event_type("paid.v1", Paid)

    @app.task("sealed", encrypt=True)
    async def sealed(ctx: headrace.Context, card: str) -> None:
        ctx.publish("paid.v1", Paid(card))

    await sealed.enqueue(card=MARKER)
    await worker(app, queues=["default"]).run_until_idle()
    [event] = (await app.list(JobFilter(tasks=("headrace.publish",)))).jobs
    await worker(other).run_until_idle()
    assert (await app.get(event.id)).attempt == 0
    app.clock.advance(2)
    await worker(app).run_until_idle()
    assert (await app.get(event.id)).status is Status.COMPLETED
