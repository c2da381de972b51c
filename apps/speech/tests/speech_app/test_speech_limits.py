"""Never more than three at once for a user, over all workers; others go on; first come, first
served.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from speech_app.conftest import Make
from speech_support.making import Made
from speech_support.speech_server import SpeechServer
from tests.support.processes import until

import headrace
from headrace import Status


async def statuses(made: Made, ids: list[str]) -> list[str]:
    return [(await made.app.get(job_id)).status.value for job_id in ids]


async def test_a_user_has_three_at_once_and_the_fourth_starts_when_one_ends(
    make: Make, server: SpeechServer
) -> None:
    server.hold = True
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(make())
        second = await stack.enter_async_context(make())
        workers = [
            headrace.JobOrchestrator(each.app, name=f"worker-{number}", max_workers=4)
            for number, each in enumerate((first, second))
        ]
        texts = [f"ada {number}" for number in range(6)]
        ids = [await first.hand_in(text, user="ada") for text in texts]
        others = [await second.hand_in(f"bob {number}", user="bob") for number in range(2)]
        for worker in workers:
            await worker.start()
        try:
            await until(lambda: len(server.held) == 5, "three of one and two of the other")
            assert sorted(server.held) == [*texts[:3], "bob 0", "bob 1"]
            assert await statuses(first, ids) == ["running"] * 3 + ["pending"] * 3
            # Three slots were free, and nobody took the fourth.
            waiting = await first.app.get(ids[3])
            assert (waiting.lane, waiting.width) == ("user:ada", 3)
            server.release("bob 0", "bob 1")
            await until(lambda: ended(first, others), "the other user's jobs")
            assert sorted(server.held) == texts[:3]
            for number in range(3, 6):
                # Whichever ends, the next in line starts.
                server.release(texts[number - 2])
                await until(lambda number=number: texts[number] in server.held, "the next one")
                assert len(server.held) == 3
                assert await statuses(first, ids[number + 1 :]) == ["pending"] * (5 - number)
            server.release_all()
            await until(lambda: ended(first, ids), "all jobs")
        finally:
            server.release_all()
            for worker in workers:
                await worker.stop()
        assert server.most == {"ada": 3, "bob": 2}
        begun = [text for text in server.begun if text.startswith("ada")]
        assert begun[3:] == texts[3:]
        used = {(await first.app.get(job_id)).worker for job_id in [*ids, *others]}
        assert len(used) == 2, "both workers have worked"


async def ended(made: Made, ids: list[str]) -> bool:
    return set(await statuses(made, ids)) == {Status.COMPLETED}
