"""Transient stages: their values are on no disk, and are computed again while they are needed."""

from __future__ import annotations

import copy
import logging
import pickle
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.durable.entries import STAGE, stage_view
from headrace.model.status import Status
from headrace.task.codec import encode
from headrace.testing import override
from tests.conftest import Servers
from tests.orchestrator.conftest import Worker
from tests.orchestrator.durable import handlers

SECRET = "unmasked-6f1c0a"
# The search finds what is there: an ordinary stage and a file have these.
OPEN, IN_FILE = "ordinary-9b27e4", "in-a-file-51d3aa"


def where_found(marker: str, *folders: Path) -> list[str]:
    """Return the files below folders that contain a marker."""
    wanted = marker.encode()
    return [
        str(path)
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and wanted in path.read_bytes()
    ]


async def test_the_value_of_a_transient_stage_is_on_no_disk(  # noqa: PLR0917
    app: headrace.App,
    worker: Worker,
    clock: Clock,
    servers: Servers,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    large = app.settings.payload_limit + 10
    ran: list[str] = []

    def parse(size: int) -> dict[str, str]:
        ran.append("parse")
        return {"text": SECRET + "." * size}

    @app.task
    async def ingest(ctx: headrace.Context) -> str:
        small: Any = await ctx.stage("parsing", parse, 1, transient="masking")
        big = await ctx.stage("reading", parse, large, transient=True)
        await ctx.stage("open", lambda: OPEN)
        await ctx.artifacts.put("a.txt", IN_FILE.encode())
        await ctx.sleep(60)
        masked = await ctx.stage("masking", lambda: f"{small['text'][:2]}… {len(big['text'])}")
        if ctx.attempt == 1:
            raise ConnectionError("away")
        assert small is headrace.GONE
        return masked

    orchestrator = worker(app)
    job = await ingest.enqueue()
    await orchestrator.run_until_idle()
    for _ in range(2):
        clock.advance(61)
        await orchestrator.run_until_idle()
    over = await app.get(job.id)
    assert (over.status, over.result) == (Status.COMPLETED, f"un… {large + len(SECRET)}"), over
    # Twice in each of the first two runs, and then only what the job's end ends the need for.
    assert ran == ["parse"] * 5
    await orchestrator.stop()

    engine = request.node.callspec.params["url"]
    folders = [tmp_path]
    if engine != "sqlite":
        folders.append(servers.running[engine].folder)
    assert where_found(IN_FILE, tmp_path / "artifacts")
    assert where_found(OPEN, folders[-1])
    assert where_found(SECRET, *folders) == []
    assert SECRET not in caplog.text


@pytest.mark.parametrize("ends", ["masking", True])
async def test_a_later_attempt_computes_it_again_while_it_is_needed(
    app: headrace.App, worker: Worker, clock: Clock, ends: str | bool
) -> None:
    ran: list[str] = []
    got: list[str] = []

    async def parse() -> object:
        ran.append("parse")
        return object()  # what JSON cannot hold: it is never encoded

    async def mask(text: object) -> str:
        ran.append("mask")
        if ran.count("mask") == 1:
            raise ConnectionError("away")
        return "masked"

    @app.task
    async def ingest(ctx: headrace.Context) -> str:
        text = await ctx.stage("parsing", parse, done="parsed", transient=ends)
        got.append(repr(text))
        masked: str = await ctx.stage("masking", mask, text)
        if ctx.attempt == 2:
            raise ConnectionError("away")
        return masked

    orchestrator = worker(app)
    job = await ingest.enqueue()
    for _ in range(3):
        await orchestrator.run_until_idle()
        clock.advance(21)
    over = await app.get(job.id)
    assert (over.status, over.result, over.attempt) == (Status.COMPLETED, "masked", 3), over.error
    if ends is True:
        assert ran == ["parse", "mask", "parse", "mask", "parse"]
    else:
        assert ran == ["parse", "mask", "parse", "mask"]
        assert got[-1] == "headrace.GONE"
    # That it was done, and how long it took, is all that is stored.
    views = [stage_view(entry) for entry in await app.engine.entries(job.id, STAGE)]
    assert [view.name for view in views] == ["parsing", "masking"]
    assert (views[0].done, views[0].artifact, views[0].seconds > 0) == ("parsed", None, True)


async def test_run_again_from_a_stage(app: headrace.App, worker: Worker) -> None:
    ran: list[str] = []

    @app.task
    async def ingest(ctx: headrace.Context) -> None:
        await ctx.stage("parsing", ran.append, "parse", transient="masking")
        await ctx.stage("chunking", ran.append, "chunk")
        await ctx.stage("masking", ran.append, "mask")
        await ctx.stage("storing", ran.append, "store")

    orchestrator = worker(app)
    job = await ingest.enqueue()
    await orchestrator.run_until_idle()
    for stage, expected in (
        ("storing", ["store"]),
        ("masking", ["parse", "mask", "store"]),
        ("chunking", ["parse", "chunk", "mask", "store"]),
        ("parsing", ["parse", "chunk", "mask", "store"]),
    ):
        ran.clear()
        await app.retry(job.id, from_stage=stage)
        await orchestrator.run_until_idle()
        assert (await app.get(job.id)).status is Status.COMPLETED
        assert ran == expected, stage


async def test_in_a_loop_the_later_stage_of_the_same_key_counts(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    ran: list[str] = []

    @headrace.stage("parsing", key="{name}", transient="masking")
    async def parse(ctx: headrace.Context, name: str) -> str:
        ran.append(f"parse {name}")
        return name

    @local.task
    async def ingest(ctx: headrace.Context) -> list[str]:
        found = []
        for name in ("a", "b"):
            text = await parse(ctx, name)
            if name == "b" and ctx.attempt == 1:
                raise ConnectionError("away")
            found.append(await ctx.stage("masking", str.upper, text, key=name))
        return found

    orchestrator = worker(local)
    job = await ingest.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(6)
    await orchestrator.run_until_idle()
    assert (await local.get(job.id)).result == ["A", "B"]
    assert ran == ["parse a", "parse b", "parse b"]


async def test_a_stage_that_is_not_transient_any_more_is_run_and_stored(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    """As after a new version of the program: nothing is read that was not stored."""

    @local.task
    async def ingest(ctx: headrace.Context) -> str:
        first = ctx.attempt == 1
        text = await ctx.stage("parsing", lambda: "text", transient=first)
        if first:
            raise ConnectionError("away")
        return text

    orchestrator = worker(local)
    job = await ingest.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(6)
    await orchestrator.run_until_idle()
    assert (await local.get(job.id)).result == "text"


@pytest.mark.parametrize("use", ["argument", "returned", "result"])
async def test_what_is_gone_cannot_be_used(
    local: headrace.App, worker: Worker, clock: Clock, use: str
) -> None:
    @local.task(retry=headrace.RetryPolicy(retries=1, base=1))
    async def ingest(ctx: headrace.Context) -> Any:
        text = await ctx.stage("parsing", lambda: "x", transient="masking")
        await ctx.stage("masking", lambda: None)
        if ctx.attempt == 1:
            raise ConnectionError("away")
        if use == "argument":
            await ctx.stage("storing", str, text)
        if use == "returned":
            await ctx.stage("storing", lambda: text)
        return text

    orchestrator = worker(local)
    job = await ingest.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(2)
    await orchestrator.run_until_idle()
    over = await local.get(job.id)
    assert over.status is Status.FAILED
    assert "headrace.GONE is not a value" in (over.error or ""), over.error


def test_gone_says_what_it_is() -> None:
    assert repr(headrace.GONE) == "headrace.GONE"
    for use in (encode, pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="what a transient stage returns"):
            use(headrace.GONE)
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error):
        connection.execute("SELECT ?", (headrace.GONE,))


@pytest.mark.parametrize("wrong", ["parsing", 7, None])
async def test_what_ends_the_need_is_another_stage(wrong: Any) -> None:
    with pytest.raises(headrace.InvalidSetting, match="the name of a later stage"):

        @headrace.stage("parsing", transient=wrong)
        async def parse(ctx: headrace.Context) -> None: ...


@pytest.fixture
async def shop() -> AsyncIterator[headrace.App]:
    async with override(handlers.app) as app:
        yield app


async def test_transient_stages_in_a_child_process(
    shop: headrace.App, worker: Worker, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    job = await handlers.secretive.enqueue(str(log))
    orchestrator = worker(shop)
    await orchestrator.start()
    for _ in range(3):
        await orchestrator.run_until_idle()
        shop.clock.advance(21)
    over = await shop.get(job.id)
    assert over.status is Status.COMPLETED, over.error
    assert over.result == ["headrace.GONE", "UN"]
    assert log.read_text().split() == ["parse", "mask", "parse", "mask"]
    entries = await shop.engine.entries(job.id)
    assert not any(b"UNMASKED" in entry.body for entry in entries)
