"""What fails is tried again after 5, 10 and 20 s; what cannot get better is not; ten minutes are
the end, and so is the death of a worker.
"""

from __future__ import annotations

import asyncio

import pytest
from speech_app.conftest import Make
from speech_support.making import Made
from speech_support.speech_server import SpeechServer
from tests.support.processes import until
from tests.support.verbs import LEASE, a_worker, claim

import headrace
from headrace import testing
from headrace.model.worker import WorkerStats
from headrace.upkeep import Sweep

LONG = 120.0
TIMEOUT = 600.0
LATEST = 30.0


async def run(made: Made, advance: float = 0.0) -> None:
    await testing.run(made.app, advance=advance)


async def test_a_provider_that_fails_is_asked_again_after_5_10_and_20_seconds(
    make: Make, server: SpeechServer
) -> None:
    clock = headrace.Clock()
    async with make(clock=clock) as made:
        server.failing = {"one": 100}
        job_id = await made.hand_in("one")
        await run(made)
        for asked, delay in ((1, 5), (2, 10), (3, 20)):
            assert server.asked("one") == asked
            job = await made.app.get(job_id)
            assert job.status == "scheduled"
            # Its time is told by the engine, the end of its attempt by the worker.
            left = (job.run_at - job.attempts[-1].ended_at).total_seconds()
            assert delay - 1 < left <= delay + 5
            view = await made.dialogues.get(job_id)
            assert view is not None
            assert (view.status, view.retry_count) == ("scheduled", asked - 1)
            assert "answered 500" in str(view.error_message)
            await run(made, advance=delay)
        assert server.asked("one") == 4
        view = await made.dialogues.get(job_id)
        assert view is not None
        assert (view.status, view.retry_count, view.audio_file_id) == ("failed", 3, None)
        assert 'turn 1 of 1 ("Ann")' in str(view.error_message)
        # When the provider is back, it can be handed in again.
        server.failing = {}
        assert await made.dialogues.retry(job_id)
        await run(made)
        again = await made.dialogues.get(job_id)
        assert again is not None
        assert (again.status, again.error_message) == ("completed", None)


async def test_the_delays_are_5_10_and_20_seconds(make: Make) -> None:
    async with make() as made:
        policy = made.app.tasks["speech.dialogue"].policy
        assert [policy.retry.delay(attempt) for attempt in (1, 2, 3)] == [5, 10, 20]
        assert (policy.timeout, policy.on_crash) == (TIMEOUT, "fail")


async def test_a_timeout_is_noticed_in_time_when_the_worker_is_gone(make: Make) -> None:
    clock = headrace.Clock()
    async with make(clock=clock) as made:
        engine = made.app.engine
        job_id = await made.hand_in("one")
        gone = await a_worker(engine, "gone")
        [job] = await claim(engine, gone)
        assert job.id == job_id
        sweep = Sweep(engine=engine, clock=clock, lease_seconds=LEASE)
        # It lives for nearly ten minutes, and then it is not heard of any more.
        keeper = engine.keeper(gone, LEASE)
        try:
            for _ in range(39):
                clock.advance(LEASE / 2)
                assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
                await sweep.tick()
                assert (await made.app.get(job_id)).status == "running"
        finally:
            await asyncio.to_thread(keeper.close)
        clock.advance(TIMEOUT + LATEST - 39 * LEASE / 2)
        await sweep.tick()
        view = await made.dialogues.get(job_id)
        assert view is not None
        assert (view.status, view.audio_file_id) == ("timeout", None)
        assert "did not finish within 600 s" in str(view.error_message)
        assert await made.dialogues.retry(job_id)
        await run(made)
        again = await made.dialogues.get(job_id)
        assert again is not None
        assert again.status == "completed"


async def test_a_worker_that_died_leaves_an_interrupted_job_to_be_handed_in_again(
    make: Make, server: SpeechServer
) -> None:
    clock = headrace.Clock()
    async with make(clock=clock) as made:
        server.failing = {"two": 1}
        job_id = await made.hand_in("one", "two")
        await run(made)
        clock.advance(6)
        # The second attempt is that of a worker that dies.
        await made.app.engine.promote_due(10)
        [job] = await claim(made.app.engine, await a_worker(made.app.engine, "gone"))
        assert job.id == job_id
        clock.advance(LEASE + 1)
        await Sweep(engine=made.app.engine, clock=clock, lease_seconds=LEASE).tick()
        view = await made.dialogues.get(job_id)
        assert view is not None
        assert (view.status, view.audio_file_id) == ("failed", None)
        assert str(view.error_message).startswith("interrupted")
        assert await made.dialogues.retry(job_id)
        await run(made)
        again = await made.dialogues.get(job_id)
        assert again is not None
        assert again.status == "completed"
        assert (server.asked("one"), server.asked("two")) == (1, 2)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
class TestOnOneEngine:
    """What does not depend on where jobs are."""

    async def test_a_timeout_ends_the_job_while_its_worker_lives(
        self, make: Make, server: SpeechServer
    ) -> None:
        clock = headrace.Clock()
        async with make(clock=clock) as made:
            server.hold = True
            job_id = await made.hand_in("one")
            worker = headrace.JobOrchestrator(made.app, name="steady")
            await worker.start()
            try:
                await until(lambda: server.held == ["one"], "the turn")
                clock.advance(TIMEOUT + 1)

                async def over() -> bool:
                    return (await made.app.get(job_id)).status.final

                await until(over, "the end of the job")
            finally:
                server.release_all()
                await worker.stop()
            view = await made.dialogues.get(job_id)
            assert view is not None
            assert view.status == "timeout"
            assert "did not finish within 600 s" in str(view.error_message)
            assert server.asked("one") == 1

    @pytest.mark.parametrize(
        ("status", "error_type"), [(401, "AuthenticationError"), (400, "ValidationError")]
    )
    async def test_a_refusal_is_tried_once(
        self, make: Make, server: SpeechServer, status: int, error_type: str
    ) -> None:
        async with make(clock=headrace.Clock()) as made:
            server.answers = [(status, {}, b"no")] * 10
            job_id = await made.hand_in("one")
            await run(made, advance=LONG)
            job = await made.app.get(job_id)
            assert (job.status, job.attempt, job.error_type) == ("failed", 1, error_type)
            assert len(server.requests) == 1

    async def test_the_pause_that_a_service_asks_for_is_kept(
        self, make: Make, server: SpeechServer
    ) -> None:
        clock = headrace.Clock()
        async with make(clock=clock) as made:
            server.answers = [(429, {"Retry-After": "90"}, b"")]
            job_id = await made.hand_in("one")
            await run(made, advance=60)
            assert (await made.app.get(job_id)).status == "scheduled"
            assert len(server.requests) == 1
            await run(made, advance=60)
            assert (await made.app.get(job_id)).status == "completed"
            assert len(server.requests) == 2
