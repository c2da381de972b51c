"""Three servers with a rule of each kind, workers, dispatchers and a receiver: all of them real."""

from __future__ import annotations

import asyncio
import json
import math
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

import headrace
from headrace.model.alerts.rule import KINDS
from headrace.model.job import Job, JobFilter, NewJob
from headrace.publishing.tasks import ALERT
from tests.alerts.shared import CLOCK, ROUNDS, SharedClock
from tests.alerts.space import Space
from tests.publishing.receiver import Receiver
from tests.support.processes import Process, Processes, until
from tests.support.verbs import a_job

PROGRAM = "tests.alerts.scene_program:app"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGES, TAKEN_AT_ONCE = 250, 10
# Less than after which a dispatcher counts as silent, with time for a machine that is busy.
STEP = 15.0
LEASE = 60.0
LONG = 120.0
SERVERS = 3
RULES: dict[str, dict[str, Any]] = {
    "queue_length": {"above": 2, "queues": ["long"]},
    "queue_age": {"above": "1m", "queues": ["late"]},
    "failure_rate": {"above": "50%", "window": "1h", "least": 6, "queues": ["fails"]},
    "wait_p95": {"above": "1m", "window": "1h", "least": 10, "queues": ["late"]},
    # A server that is killed is a lost worker as well.
    "worker_lost": {"names": ["crane"]},
    "lane_stuck": {"queues": ["lanes"]},
    "breaker_open": {"queues": ["calls"]},
    "schedule_missed": {},
    "dispatcher_silent": {},
    # Another cron dispatcher is behind as well, when it makes up for the schedule.
    "dispatcher_behind": {"above": 200, "names": ["orders"]},
    "dead_letters": {},
}
SUBJECTS = {
    "queue_length": "long",
    "queue_age": "late",
    "failure_rate": "fails",
    "wait_p95": "late",
    "worker_lost": "crane",
    "lane_stuck": "lanes/user:7",
    "breaker_open": "calls/task:call",
    "schedule_missed": "minutely",
    "dispatcher_behind": "orders",
    "dead_letters": "dead letters",
    "engine_space": "engine",
}


class Scene:
    """What runs on one store. `servers` are those that live."""

    def __init__(self, url: str, folder: Path, programs: Processes, receiver: Receiver) -> None:
        self.clock = SharedClock(folder / CLOCK)
        self.app = headrace.App(url, clock=self.clock, artifacts=str(folder / "files"))
        self.engine = self.app.engine
        self.space = Space(self.app, url)
        self.receiver = receiver
        self.servers: list[Process] = []
        self._folder = folder
        self._programs = programs
        self._environment = {
            "HEADRACE_URL": url,
            "HEADRACE_APP": PROGRAM,
            "HEADRACE_ALERTS": str(folder / "alerts.yaml"),
            "HEADRACE_ALLOW_PRIVATE_WEBHOOKS": "true",
            "HEADRACE_LEASE_SECONDS": f"{LEASE:g}",
            "ALERT_SCENE": str(folder),
            "OPS_URL": receiver.url,
            "OPS_SECRET": SECRET,
        }

    # -- what runs ---------------------------------------------------------------------------------

    async def write_files(self) -> None:
        """Write what the programs read. JSON is YAML too."""
        rules = RULES | {"engine_space": await self.space.rule()}
        assert set(rules) == set(KINDS)
        receiver = {"kind": "webhook", "options": {"url": "${OPS_URL}"}, "secret": "${OPS_SECRET}"}
        self._write(
            "alerts.yaml",
            {
                "receivers": {"ops": receiver},
                "rules": {each: {"kind": each, "to": "ops", **rules[each]} for each in rules},
            },
        )
        self._write("cron.yaml", {"dispatcher": {"max_sleep_seconds": 1}})
        adapter = "tests.alerts.slow_folder:SlowFolder"
        options = {"folder": str(self._folder / "orders"), "batch_size": TAKEN_AT_ONCE}
        self._write("orders.yaml", {"adapter": adapter, "options": options})
        (self._folder / "orders").mkdir()

    def _write(self, name: str, content: object) -> None:
        (self._folder / name).write_text(json.dumps(content))

    def send(self) -> None:
        """Put more messages into the folder than its dispatcher takes; the first makes no job."""
        for number in range(MESSAGES):
            body = b"{" if number == 0 else b'{"handler_name": "fine"}'
            (self._folder / "orders" / f"{number:03}.json").write_bytes(body)

    def start(self, *words: str) -> Process:
        """Start a program."""
        return self._programs.headrace(*words, **self._environment)

    def start_worker(self, name: str, *queues: str) -> Process:
        """Start a worker for some queues."""
        return self.start("worker", "--name", name, "--queues", ",".join(queues))

    async def started(self, workers: int, dispatchers: int) -> None:
        """Wait until so many report, and every server has evaluated."""

        async def reporting() -> bool:
            alive = [each for each in await self.engine.workers() if each.alive]
            return (len(alive), len(await self.app.dispatchers())) == (workers, dispatchers)

        await until(lambda: all(map(self.rounds_of, self.servers)), "a round of each server", LONG)
        await until(reporting, "the workers and dispatchers", LONG)

    def let(self, what: str) -> None:
        """Let jobs end, or the dispatcher go on: RELEASE or OPEN."""
        (self._folder / what).touch()

    async def replace_server(self, gone: Process) -> None:
        """Start a server in the place of one that was killed, and wait until it evaluates too."""
        self.servers[self.servers.index(gone)] = self.start("server", "--port", "0")
        await self.evaluated()

    # -- jobs --------------------------------------------------------------------------------------

    async def enqueue(self, number: int, queue: str, task: str = "fine", **fields: Any) -> None:
        """Enqueue so many jobs."""
        jobs: list[NewJob] = [
            a_job(task=task, queue=queue, max_attempts=1, **fields) for _ in range(number)
        ]
        await self.engine.insert(jobs)

    async def ended(self, *queues: str) -> None:
        """Wait until nothing of these queues is unfinished."""

        async def over() -> bool:
            found = {each.name: each for each in await self.engine.queues()}
            return not any(
                each.ready + each.waiting + each.scheduled + each.running
                for each in map(found.get, queues)
                if each is not None
            )

        await until(over, f"the end of the jobs of {queues}", LONG)

    async def running(self, number: int) -> None:
        """Wait until so many jobs are held."""

        async def there() -> bool:
            found = await self.engine.queues()
            return sum(each.running for each in found if each.name in ("lanes", "crane")) == number

        await until(there, f"{number} running jobs", LONG)

    async def deliveries(self) -> list[Job]:
        """Return the jobs that tell of alerts."""
        return (await self.app.list(JobFilter(tasks=(ALERT,)), limit=200)).jobs

    # -- time --------------------------------------------------------------------------------------

    async def let_pass(self, seconds: float) -> None:
        """Let time pass in steps, after each of which all that lives has reported."""
        for _ in range(math.ceil(seconds / STEP)):
            self.clock.advance(STEP)
            begun = self.clock.utcnow()

            async def reported(begun: datetime = begun) -> bool:
                alive = {each.pid for each in self._programs.started if each.code is None}
                workers = await self.engine.workers()
                dispatchers = await self.app.dispatchers()
                seen = [each.heartbeat_at for each in workers if each.pid in alive]
                seen += [each.seen_at for each in dispatchers if each.pid in alive]
                return all(each >= begun for each in seen)

            await until(reported, "a report of everybody", LONG)

    def rounds_of(self, server: Process) -> int:
        """Return how often a server has evaluated."""
        path = self._folder / f"{ROUNDS}-{server.pid}"
        return os.path.getsize(path) if path.exists() else 0

    async def evaluated(self) -> None:
        """Wait until each of three servers, which all run, has evaluated what is so now: a round
        may have been under way.
        """
        self.all_run()
        before = {each.pid: self.rounds_of(each) for each in self.servers}
        await until(
            lambda: all(self.rounds_of(each) >= before[each.pid] + 2 for each in self.servers),
            "two rounds of each server",
            LONG,
        )
        self.all_run()

    def all_run(self) -> None:
        """Three servers run."""
        assert [each.code for each in self.servers] == [None] * SERVERS

    # -- what was told -----------------------------------------------------------------------------

    @property
    def told(self) -> list[tuple[str, str]]:
        """What the receiver was told, by rule and status, in the order of arrival."""
        events = [each.verified(SECRET)["data"] for each in self.receiver.requests]
        return [(each["rule"], each["status"]) for each in events]

    async def heard(self, status: str, *rules: str) -> None:
        """Wait until the receiver was told this of these rules."""
        wanted = {(each, status) for each in rules}
        try:
            await until(lambda: wanted <= set(self.told), "the messages", LONG)
        except AssertionError:
            missing = wanted - set(self.told)
            states = [msgspec.to_builtins(each) for each in await self.app.alerts()]
            said = "\n".join(each.said[-3_000:] for each in self._programs.started)
            raise AssertionError(f"missing {missing}; {states}\n{said}") from None
        self.all_run()

    async def close(self) -> None:
        """Leave the engine as it was."""
        await self.space.close()
        await asyncio.wait_for(self.app.close(), LONG)
