"""A user with exactly the rights that the documentation lists can do everything; none is idle."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from uuid import uuid4

import pytest

from headrace.clock import Clock
from headrace.engine.redis import scripts
from headrace.engine.redis.engine import RedisEngine
from headrace.errors import EngineError
from headrace.model.insert_policy import InsertPolicy
from headrace.model.job import JobFilter
from headrace.model.limits.rate import Rate
from headrace.model.status import Status
from headrace.model.worker import WorkerStats
from tests.engine.redis.conftest import REDISES
from tests.engine.redis.production.nodes import Node, started
from tests.support.processes import ROOT
from tests.support.servers import redis_binaries
from tests.support.verbs import LEASE, a_job, a_worker, claim, complete, enqueue, retry, status

PAGE = ROOT / "docs/how-to/redis-production.md"
LINES = re.findall(r"^ACL SETUSER jobs (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
DOCTOR = "+info +config|get"


@pytest.fixture(scope="module", params=REDISES)
def server(request: pytest.FixtureRequest) -> Iterator[Node]:
    node: Node = started(lambda: Node(redis_binaries()[request.param], "acl"))
    yield node
    node.destroy()


def url(server: Node, lines: list[str]) -> str:
    """A new store, and a user with these rights in it."""
    namespace = f"t{uuid4().hex[:8]}"
    user = f"user-{namespace}"
    for line in lines:
        rights = line.replace("{headrace}", f"{{{namespace}}}").split()
        assert server.ask("ACL", "SETUSER", user, *rights) == "OK"
    return f"redis://{user}:password@127.0.0.1:{server.port}/0?namespace={namespace}&timeout=5"


async def smoke(url: str) -> list[str]:
    """A bit of everything; returns the subjects that `doctor` finds fault with."""
    engine = RedisEngine(url, clock=Clock())
    try:
        await engine.open()
        work = asyncio.Event()
        stop = await engine.listen(work.set, lambda _: None)
        worker = await a_worker(engine)
        keeper = engine.keeper(worker, LEASE)
        try:
            assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
        finally:
            await asyncio.to_thread(keeper.close)
        first = await enqueue(engine, key="k")
        assert engine.listening, "it may not subscribe"
        await asyncio.wait_for(work.wait(), 60)
        in_lane = [await enqueue(engine, lane="l", rate=Rate(100, 1, 100)) for _ in range(2)]
        later = await enqueue(engine, delay=60)
        policy = InsertPolicy(on_duplicate="replace")
        replaced = await engine.insert_by_policy(a_job(key="k", task="work", policy=policy))
        assert first in replaced.cancelled
        jobs = {job.id: job for job in await claim(engine, worker, 10)}
        assert len(jobs.keys() & {*in_lane}) == 1
        for n, job in enumerate(jobs.values()):
            assert await (complete(engine, job) if n else retry(engine, job))
        assert (await engine.cancel([later]))[later]
        assert await engine.rerun([later]) == [later]
        await engine.cancel(in_lane)
        await engine.set_rate("default", "l", Rate(5, 1, 1))
        assert (await engine.rates())[0].lane == "l"
        await engine.hold_lane("default", "l", 0)
        await engine.pause("default", True)
        await engine.pause("default", False)
        await engine.promote_due(10)
        await engine.expire(10)
        await engine.take_lost(10)
        assert await engine.lanes() is not None
        assert (await engine.queues())[0].name == "default"
        assert (await engine.list_jobs(JobFilter(), limit=10)).jobs
        assert (await engine.workers())[0].id == worker
        await engine.record_put("kind", "key", b"body")
        assert (await engine.record_list("kind"))[0].body == b"body"
        await engine.record_delete("kind", "key")
        assert await engine.now() > 0
        assert await engine.prune(older_than=0) > 0
        await engine.retire(worker)
        assert await status(engine, later) is not Status.CANCELLED
        assert await engine.audit() == []
        stop()
        return [each.subject for each in (await engine.report()).findings if each.level != "ok"]
    finally:
        await engine.close()


async def test_a_user_with_exactly_the_listed_rights_does_everything(server: Node) -> None:
    assert "settings" not in await smoke(url(server, LINES))


@pytest.mark.parametrize("missing", LINES[1:])
async def test_without_any_of_the_lines_something_is_refused(server: Node, missing: str) -> None:
    limited = url(server, [line for line in LINES if line != missing])
    if missing == DOCTOR:
        assert "settings" in await smoke(limited)
        return
    with pytest.raises((EngineError, AssertionError), match=r"refuses this user|subscribe"):
        await smoke(limited)


def test_the_list_has_all_commands_of_scripts_and_no_others() -> None:
    listed = {word[1:] for line in LINES for word in line.split() if word[0] == "+"}
    texts = [scripts.text(name) for name in scripts.names()]
    texts += [path.read_text("utf-8") for path in scripts._library().values()]
    code = "\n".join(texts)
    named = {each.lower() for each in re.findall(r"\b(?:p?call|write|read)\(\s*'([A-Z]+)'", code)}
    own = {"hello", "ping", "evalsha", "script|load", "subscribe", *DOCTOR.replace("+", "").split()}
    assert listed == named | own
