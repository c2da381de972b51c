"""Every page, part, stream and download, as everybody: nobody reads what is not for them.

All that is declared is visited, so a new page that tells too much fails here by itself.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_plus

import httpx
import pytest
import pytest_asyncio

import headrace
from headrace.breakers.by_hand import open_by_hand
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from headrace.model.fingerprint import fingerprint
from headrace.model.job import JobFilter
from headrace.monitor.counters.worker_metrics import KIND, encode
from headrace.server.dashboard.action import all_actions
from headrace.server.dashboard.page import DashboardPage, all_files, all_pages
from headrace.server.dashboard.pages.intake.dead_letters import group_of
from headrace.telemetry import Telemetry
from tests.dashboard.conftest import MakeSite, Site
from tests.dashboard.test_session import client, signed_in, token
from tests.dashboard.test_stream import stream
from tests.server.conftest import a_key, bearer, run_jobs
from tests.support.verbs import a_job, a_worker, claim

# Stands in everything that belongs to another queue, and in nothing else.
FOREIGN = "zanzibar"
MINE, THEIRS = ("mine", "default"), f"{FOREIGN}-queue"
SECRET = "hunter-hidden"
MESSAGE = f"cannot log in with {SECRET}"
REASON = f"password must be a number, got {SECRET}"
LETTER = f'{{"handler_name":"unlock","params":{{"password":"{SECRET}"}}}}'.encode()
# A hash of a message lets people try what was hidden in it.
HIDDEN = (SECRET, fingerprint("ValueError", MESSAGE))
TRIAL = "/trial"


class Scene:
    """A site, and what may stand in the paths and queries of its pages, by parameter."""

    def __init__(self, site: Site, values: dict[str, list[str]]) -> None:
        self.site = site
        self.values = values

    def paths(self, pattern: str) -> Iterator[str]:
        """Every path that a pattern can stand for."""
        names = re.findall(r"\{(\w+)[^}]*\}", pattern)
        for given in itertools.product(*(self.values[name] for name in names)):
            path = pattern
            for value in given:
                path = re.sub(r"\{[^}]*\}", quote(value, safe=""), path, count=1)
            yield path

    def views(self, page: DashboardPage) -> Iterator[str]:
        """A page as it is, and with each parameter that it knows."""
        for path in self.paths(page.path):
            yield path
            if "{" not in page.path:
                for name in sorted(page.query & self.values.keys()):
                    extra = "&action=retry" if "action" in page.query else ""
                    yield from (
                        f"{path}?{name}={quote(value, safe='')}{extra}"
                        for value in self.values[name]
                    )


@pytest_asyncio.fixture(loop_scope="session")
async def scene(make_site: MakeSite, tmp_path: Path) -> AsyncIterator[Scene]:
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts=str(tmp_path / "artifacts"))

    @app.task(queue="mine", retries=0)
    async def login(password: str = SECRET, config: dict[str, Any] = {"secret": SECRET}) -> None:  # noqa: B006
        raise ValueError(f"cannot log in with {password}")

    @app.task(queue="mine")
    async def unlock(password: int) -> None: ...

    @app.task(queue="mine")
    async def tell(ctx: headrace.Context, password: str) -> Any:
        ctx.progress(50, f"sent {password}")
        return await ctx.stage(
            "asking", dict, {"password": password, "more": [{"Secret": password}]}
        )

    @app.task(f"{FOREIGN}_task", queue=THEIRS, retries=0, lane=f"{FOREIGN}-lane")
    async def theirs(zanzibar: str = FOREIGN) -> None:
        raise ValueError(f"{zanzibar} broke")

    flow = app.workflow("flow", params={"password": SECRET})
    flow.step("one", tell, {"password": flow.params.password})
    other = app.workflow(f"{FOREIGN}-flow", queue=THEIRS, params={FOREIGN: FOREIGN})
    other.step(f"{FOREIGN}-step", theirs, {"zanzibar": FOREIGN})

    mixed = app.workflow("mixed", queue="mine")
    near = mixed.step("near", tell, {"password": "x"})
    mixed.step(f"{FOREIGN}-far", theirs, {}, needs=[near])

    async with app:
        site = await make_site(app)
        for _ in range(2):
            await app.enqueue("login", {"password": SECRET}, meta={"api_key": SECRET})
        await app.enqueue("tell", {"password": SECRET})
        await app.enqueue(f"{FOREIGN}_task", meta={"for": FOREIGN})
        runs = [(await app.workflows.run(each)).id for each in ("flow", f"{FOREIGN}-flow", "mixed")]
        await run_jobs(app)
        await app.put_schedule("mine", "0 3 * * *", "tell", params={"password": SECRET})
        await app.put_schedule(f"{FOREIGN}-cron", "0 3 * * *", f"{FOREIGN}_task")
        await app.pause(THEIRS, reason=FOREIGN, by="ada")
        place = (THEIRS, f"{FOREIGN}-lane")
        for lane in ("", place[1]):
            await app.set_rate(THEIRS, "7/m", lane=lane)
            await app.hold(THEIRS, lane=lane, duration=3_600, reason=FOREIGN, by=FOREIGN)
        assert await open_by_hand(app.engine, place, 600.0, by=FOREIGN, reason=FOREIGN)
        await app.enqueue(f"{FOREIGN}_task")
        rejected = [
            RejectedMessage(
                Message(body=LETTER, topic=FOREIGN, key=f"{FOREIGN}-letter"), "Bad", REASON
            )
        ]
        await DeadLetters(app).keep("kafka", rejected)
        workers = [
            await a_worker(app.engine, "ours", queues=("mine", THEIRS), tasks=(f"{FOREIGN}_task",)),
            await a_worker(app.engine, f"{FOREIGN}-worker", queues=(THEIRS,)),
        ]
        stuck = a_job(task=f"{FOREIGN}_task", queue=f"{FOREIGN}-other")
        await app.engine.insert([stuck])
        await claim(app.engine, workers[1], 1, [f"{FOREIGN}-other"])
        counted = Telemetry(claimed=5)
        counted.of("tell", "mine").completed = 4
        counted.of(f"{FOREIGN}_task", THEIRS).count("failed")
        await app.engine.record_put(KIND, "ours", encode(counted))
        bulk = [
            (await app.start_bulk("retry", JobFilter(tasks=("nothing",), queues=queues))).id
            for queues in (("mine",), (THEIRS,), ("mine", THEIRS), ())
        ]
        jobs = [job.id for job in (await app.engine.list_jobs(JobFilter(), limit=100)).jobs]
        [letter] = (await app.dead_letters()).dead_letters
        letter.reason = letter.reason.replace(SECRET, "[redacted]")
        names = ["login", "tell", "other", f"{FOREIGN}_task"]
        values = {
            "job_id": jobs,
            "part": ["args", "result", "meta"],
            "layer": ["bronze"],
            "id": workers,
            "run_id": runs,
            "workflow_id": ["flow", "other", "mixed", f"{FOREIGN}-flow"],
            "bulk_id": bulk,
            "letter_id": [f"{FOREIGN}-letter"],
            "group": [group_of(letter)],
            "name": [*names, "mine", THEIRS, f"{FOREIGN}-cron"],
            "key_id": ["none"],
            "verb": ["replay"],
            "task": names,
            "queue": ["mine", THEIRS],
            "lane": [f"{FOREIGN}-lane"],
            "worker": ["ours", f"{FOREIGN}-worker"],
            "status": ["failed", "completed"],
            "error_type": ["ValueError"],
            "parent": runs,
            "search": ["log", SECRET],
            "within": ["hour"],
            "rest": ["x"],
        }
        yield Scene(site, values)


async def everything(scene: Scene, browser: httpx.AsyncClient) -> AsyncIterator[tuple[str, str]]:
    """Every address, and what it answers: whole, in part, and as a stream."""
    for page in all_pages():
        if page.path.startswith(TRIAL):
            continue
        for view in scene.views(page):
            answer = await browser.get(f"/ui{view}")
            assert answer.status_code < 500, (view, answer.text)
            yield view, answer.text
            for part in re.findall(r'id="(live-[\w-]+)"', answer.text)[:3]:
                alone = await browser.get(f"/ui{view}", headers={"Headrace-Part": part})
                yield view, alone.text
        if answer.status_code == 200 and 'id="live-' in answer.text:
            async with stream(browser, view) as live:
                yield view, "".join((await live.parts()).values())
    for file in all_files():
        for path in scene.paths(file.path):
            yield path, (await browser.get(f"/ui{path}")).text


def said(text: str, view: str) -> str:
    """An answer as people can read it, without what they have asked for themselves."""
    text = unquote_plus(html.unescape(text)).lower()
    for given in re.split(r"[/?&=]", view):
        if FOREIGN in given or given == SECRET:
            text = text.replace(unquote_plus(given).lower(), "")
    return text


async def leaks(scene: Scene, browser: httpx.AsyncClient, words: Iterable[str]) -> set[str]:
    found = set()
    async for view, text in everything(scene, browser):
        for word in words:
            if (at := (shown := said(text, view)).find(word)) >= 0:
                around = " ".join(shown[max(0, at - 80) : at + 60].split())
                found.add(f"{view}: {around}")
    return found


async def test_hidden_values_are_nowhere(scene: Scene) -> None:
    """Whoever looks: one who may do everything sees no more of them."""
    async with signed_in(scene.site, await a_key(scene.site.app)) as browser:
        found = await leaks(scene, browser, HIDDEN)
    assert not found, "\n".join(sorted(found))


@pytest.mark.parametrize("scope", ["read", "admin"])
async def test_a_key_for_some_queues_sees_no_trace_of_others(scene: Scene, scope: str) -> None:
    key = await a_key(scene.site.app, scope, queues=MINE)
    async with signed_in(scene.site, key) as browser:
        found = await leaks(scene, browser, [FOREIGN])
    assert not found, "\n".join(sorted(found))


async def test_forms_tell_a_key_for_some_queues_nothing_of_others(scene: Scene) -> None:
    key = await a_key(scene.site.app, "admin", queues=MINE)
    found = set()
    async with signed_in(scene.site, key) as browser:
        mine = await token(browser)
        for action in all_actions():
            for path in scene.paths(action.path):
                if FOREIGN not in path:
                    continue
                answer = await browser.post(f"/ui{path}", data={"token": mine, "back": "/"})
                assert answer.status_code in (403, 404, 405, 422), (path, answer.text)
                if FOREIGN in said(answer.text, path):
                    found.add(path)
    assert not found


async def test_the_api_hides_the_same(scene: Scene) -> None:
    headers = bearer(await a_key(scene.site.app))
    letter = f"/dead-letters/{FOREIGN}-letter"
    async with client(scene.site) as browser:
        for path in ("/errors", "/dead-letters", letter, "/jobs", "/workflows/runs", "/tasks"):
            text = (await browser.get(path, headers=headers)).text
            assert not [word for word in HIDDEN if word in text], path


async def test_a_message_that_makes_no_job_again_does_not_tell_what_is_hidden(scene: Scene) -> None:
    async with signed_in(scene.site, await a_key(scene.site.app)) as browser:
        form = {"token": await token(browser), "before": "2100-01-01T00:00:00+00:00"}
        [group] = scene.values["group"]
        for path in (f"/intake/letters/{FOREIGN}-letter/replay", f"/intake/groups/{group}/replay"):
            answer = await browser.post(f"/ui{path}", data=form, follow_redirects=True)
            assert "password" in answer.text, path
            assert SECRET not in answer.text, path
        headers = bearer(await a_key(scene.site.app))
        answer = await browser.post(f"/dead-letters/{FOREIGN}-letter/replay", headers=headers)
        assert "password" in answer.text
        assert SECRET not in answer.text
