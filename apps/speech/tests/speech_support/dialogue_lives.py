"""A worker of dialogues with many lives: each is killed at a point that is chosen before it begins,
and the next begins at once.

Run as `python -m speech_support.dialogue_lives URL TABLES ARTIFACTS KILLS FIRST`. Each life is a
fork of this process. What a death has interrupted is handed in again. How the lives ended is
printed as JSON.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

import headrace
from headrace import JobFilter, Status
from headrace_speech import pipeline
from headrace_speech.bundle import bundle
from headrace_speech.dialogues import Dialogues
from headrace_speech.service import TASK, SpeechService
from headrace_speech.store import repository
from headrace_speech.store.repository import AudioRepository

# Where a life may end: around each turn, the file, its record, its row and the outcome.
POINTS = (
    "speaking",
    "spoken",
    "turn stored",
    "mixing",
    "in the file",
    "file stored",
    "file kept",
    "before the commit",
    "after the commit",
    "before the outcome",
    "after the outcome",
)
SLOTS = 2
# A life that has not ended within so many seconds is a mistake of the test.
LONGEST = 120.0


class Fate:
    """Where this life ends."""

    def __init__(self) -> None:
        self.point = ""

    def reach(self, point: str) -> None:
        """Die here, if this is the point."""
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


fate = Fate()


def make_app(url: str, tables: str, artifacts: str) -> tuple[headrace.App, SpeechService]:
    """Return an App with the bundle."""
    app = headrace.App(url, artifacts=artifacts, lease_seconds=30)
    setup = app.load_bundle(bundle, processes=1, **({"url": tables} if tables else {}))
    return app, SpeechService(setup)


def watch(app: headrace.App) -> None:
    """Put points of death into the pipeline, the transaction and the outcome."""
    attempt: Any = pipeline._Attempt
    speak, mix, joined, keep = attempt._speak, attempt._mix, attempt._joined, attempt._keep
    prepared, enter, exchange = pipeline._prepared, AudioRepository.enter, app.engine.exchange
    values = repository._values

    async def watched_speak(self: Any, place: int) -> pipeline.SpokenTurn:
        fate.reach("speaking")
        result: pipeline.SpokenTurn = await speak(self, place)
        fate.reach("turn stored")
        return result

    def watched_prepared(sound: Any) -> Any:
        fate.reach("spoken")
        return prepared(sound)

    async def watched_mix(self: Any, name: str, spoken: Any) -> float:
        fate.reach("mixing")
        result: float = await mix(self, name, spoken)
        return result

    async def watched_joined(self: Any, mixer: Any, spoken: Any) -> Any:
        async for piece in joined(self, mixer, spoken):
            yield piece
            fate.reach("in the file")

    async def watched_keep(self: Any, name: str) -> None:
        await keep(self, name)
        fate.reach("file kept")

    def watched_values(row: Any) -> Any:
        fate.reach("before the commit")
        return values(row)

    async def watched_enter(self: Any, row: Any) -> Any:
        fate.reach("file stored")
        result = await enter(self, row)
        fate.reach("after the commit")
        return result

    async def watched_exchange(settlements: Sequence[Any], **options: Any) -> Any:
        done = any(each.follow for each in settlements)
        if done:
            fate.reach("before the outcome")
        answer = await exchange(settlements, **options)
        if done:
            fate.reach("after the outcome")
        return answer

    attempt._speak, attempt._mix, attempt._joined = watched_speak, watched_mix, watched_joined
    attempt._keep = watched_keep
    for owner, name, value in (
        (pipeline, "_prepared", watched_prepared),
        (AudioRepository, "enter", watched_enter),
        (repository, "_values", watched_values),
        (app.engine, "exchange", watched_exchange),
    ):
        setattr(owner, name, value)


async def live(arguments: Sequence[str]) -> None:
    """Work until nothing is left to do."""
    app, _ = make_app(*arguments)
    async with app:
        watch(app)
        # Under the same name it takes over at once what the life before has left.
        worker = headrace.JobOrchestrator(app, name="steady", max_workers=SLOTS)
        await worker.start()
        while True:
            queues = await app.engine.queues()
            if not any(q.scheduled + q.waiting + q.ready + q.running for q in queues):
                break
            await asyncio.sleep(0.02)
        await worker.stop()


def begin(arguments: Sequence[str], point: str) -> int:
    """Begin a life; return its process id."""
    child = os.fork()
    if child:
        return child
    logging.disable(logging.CRITICAL)
    fate.point = point
    code = 1
    try:
        asyncio.run(live(arguments))
        code = 0
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """Return how a life ended."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


async def hand_in_again(arguments: Sequence[str]) -> int:
    """Hand in what was interrupted; return how many there were."""
    app, service = make_app(*arguments)
    async with app:
        dialogues, wanted = Dialogues(service), JobFilter(tasks=(TASK,), statuses=(Status.FAILED,))
        failed = (await app.list(wanted, limit=1000)).jobs
        for job in failed:
            if job.error_type != "interrupted":
                raise AssertionError(f"job {job.id} failed otherwise: {job.error}")
            await dialogues.retry(job.id)
        return len(failed)


def main() -> None:
    """All lives, one after the other, until nothing is left to do."""
    *arguments, kills, first = sys.argv[1:]
    ends: Counter[str] = Counter()
    again, left = 0, int(kills)
    while True:
        point = POINTS[(int(first) + ends["killed"]) % len(POINTS)] if left > 0 else ""
        status = ended(begin(arguments, point))
        left -= 1
        if status >= 0 and os.WIFSIGNALED(status):
            ends["killed"] += 1
        elif status == 0:
            ends["lived on"] += 1
        else:
            raise AssertionError(f"a life that was to end at {point!r} ended with {status}")
        # The next life takes the dead one's jobs over, which ends them.
        more = asyncio.run(hand_in_again(arguments))
        again += more
        if status == 0 and not more:
            break
    print(msgspec.json.encode({"ends": ends, "handed_in_again": again}).decode())


if __name__ == "__main__":
    main()
