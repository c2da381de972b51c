"""Callers that enqueue by policy, and workers, all of which are killed and born again.

Run as `python -m tests.crash.policies.lives URL SEED`. Each life is a fork of this process, so that
hundreds of deaths do not take an hour. Lines on standard input say what to do, each is answered
with a line of JSON:

* a number: five processes with ten callers each, and two workers, until so many of these processes
  were killed at moments that chance chooses; then all are.
* `drain`: the workers once more, which take their jobs back, until nothing is left to do.

What callers were told, and what handlers began, is in the journal, by the time of the machine,
which is also that of the engines.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

import headrace
from headrace.model.job import NewJob
from tests.crash import journal
from tests.crash.journal import Line

CALLERS = 5
"""Processes that enqueue."""

AT_ONCE = 10
"""Callers in each of them."""

WORKER_NAMES = ("worker-0", "worker-1")
KEYS = 2
# Seconds from one death to the next, and from one call to the next, at most.
BETWEEN_DEATHS = 0.4
BETWEEN_CALLS = 0.1

WINDOW = 0.5
EXPIRES = 0.4
DEBOUNCED = 0.15
LONGEST_WAIT = 0.6
# How long jobs are put off, and how long they take: most not at all, some for long.
PUT_OFF = (0.0, 0.0, 1.0)
TAKES = (0.0, 0.0, 0.05, 0.6)


class Told(Line):
    """What a caller or a handler has to say. `call` is unique, `place` has a policy and a key."""

    call: str
    place: str = ""


def tell(event: str, call: str, **fields: Any) -> None:
    journal.write(Told(event=event, call=call, at=time.time(), **fields))


def make_app(url: str) -> headrace.App:
    """One task for each policy. The first argument of each job names the call."""
    app = headrace.App(url, lease_seconds=5)
    many = headrace.RetryPolicy(retries=10_000, base=0.0)

    async def work(ctx: headrace.Context, call: str, key: str, takes: float = 0.0) -> None:
        tell("start", call, job=ctx.job_id, token=ctx.token)
        await asyncio.sleep(takes)

    for name in ("replace", "debounce", "window", "expires"):
        app.task(name, retry=many)(work)
    for when_full in ("refuse", "replace", "cancel_running"):
        lane = headrace.Lane(f"{when_full}:{{key}}", when_full=when_full)
        app.task(f"lane_{when_full}", retry=many, lane=lane)(work)
    return app


def a_job(app: headrace.App, chance: random.Random, call: str, task: str, key: str) -> NewJob:
    """A request by the policy of a task."""
    known: dict[str, dict[str, Any]] = {
        "replace": {"key": key, "on_duplicate": "replace", "delay": chance.choice(PUT_OFF)},
        "debounce": {
            "key": key,
            "on_duplicate": "debounce",
            "delay": DEBOUNCED,
            "max_wait": LONGEST_WAIT,
        },
        "window": {"key": key, "window": WINDOW},
        "expires": {"expires": EXPIRES},
    }
    takes = chance.choice(TAKES) if task.startswith("lane_") else 0.0
    return app.tasks[task].options(**known.get(task, {})).job(call=call, key=key, takes=takes)


async def call_on(app: headrace.App, chance: random.Random, name: str) -> None:
    """Enqueue for ever, and write down what was asked for and what was answered."""
    number = 0
    while True:
        number += 1
        call = f"{name}.{number}"
        task, key = chance.choice(sorted(app.tasks)), f"k{chance.randrange(KEYS)}"
        job, place = a_job(app, chance, call, task, key), f"{task} {key}"
        tell("asked", call, place=place)
        try:
            answer = await app.enqueue(job)
        except headrace.LaneFull:
            tell("refused", call, place=place)
        except headrace.EngineUnavailable:
            # Nobody knows what became of it.
            tell("lost", call, place=place)
        else:
            tell("got", call, place=place, job=answer.id)
        await asyncio.sleep(chance.uniform(0, BETWEEN_CALLS))


async def calling(url: str, seed: int) -> None:
    async with make_app(url) as app:
        names = [f"{os.getpid()}.{number}" for number in range(AT_ONCE)]
        calls = (call_on(app, random.Random(f"{seed} {name}"), name) for name in names)
        await asyncio.gather(*calls)


async def working(url: str, name: str, *, until_done: bool) -> None:
    async with make_app(url) as app:
        worker = headrace.JobOrchestrator(app, name=name, max_workers=10)
        await worker.start()
        while True:
            queues = await app.engine.queues()
            busy = any(q.scheduled + q.waiting + q.ready + q.running for q in queues)
            if until_done and not busy:
                break
            await asyncio.sleep(0.05)
        await worker.stop()


def born(url: str, role: str, seed: int, *, until_done: bool) -> int:
    """Begin a life, and answer its process id."""
    child = os.fork()
    if child:
        return child
    logging.disable(logging.CRITICAL)
    code = 1
    try:
        if role.startswith("caller"):
            asyncio.run(calling(url, seed))
        else:
            asyncio.run(working(url, role, until_done=until_done))
        code = 0
    finally:
        os._exit(code)


def count_answers() -> int:
    """How many calls were answered so far."""
    path = Path(os.environ[journal.VARIABLE])
    return len(journal.read(path, lambda line: line.event == "got"))


class Lives:
    """The processes that live at the moment, by their roles."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.chance = random.Random(seed)
        self.alive: dict[str, int] = {}

    def begin(self, role: str, *, until_done: bool = False) -> None:
        seed = self.chance.randrange(2**32)
        self.alive[role] = born(self.url, role, seed, until_done=until_done)

    def end(self, role: str) -> str:
        """Kill one, and answer how it ended."""
        pid = self.alive.pop(role)
        os.kill(pid, signal.SIGKILL)
        killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        return f"{role.partition('-')[0]}s killed" if killed else f"{role} ended by itself"

    def disturb(self, deaths: int) -> Counter[str]:
        """Let all of them live, and kill one after the other."""
        ends: Counter[str] = Counter()
        answered = count_answers()
        for role in [*(f"caller-{n}" for n in range(CALLERS)), *WORKER_NAMES]:
            self.begin(role)
        while count_answers() - answered < AT_ONCE:
            time.sleep(0.01)
        for _ in range(deaths):
            time.sleep(self.chance.uniform(0, BETWEEN_DEATHS))
            role = self.chance.choice(sorted(self.alive))
            ends[self.end(role)] += 1
            self.begin(role)
        time.sleep(BETWEEN_DEATHS)
        for role in sorted(self.alive):
            ends[self.end(role)] += 1
        return ends

    def drain(self) -> Counter[str]:
        ends: Counter[str] = Counter()
        for role in WORKER_NAMES:
            self.begin(role, until_done=True)
        for role in WORKER_NAMES:
            status = os.waitpid(self.alive.pop(role), 0)[1]
            ends["lived on" if status == 0 else f"{role} ended: {status}"] += 1
        return ends


def main() -> None:
    """Do what is asked for, until nobody asks any more."""
    lives = Lives(sys.argv[1], int(sys.argv[2]))
    try:
        for line in sys.stdin:
            asked = line.strip()
            ends = lives.drain() if asked == "drain" else lives.disturb(int(asked))
            print(msgspec.json.encode(ends).decode(), flush=True)
    finally:
        for pid in lives.alive.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
