"""The program of servers, workers and dispatchers in a scene, in a folder that `ALERT_SCENE` names.

They are the real ones, with the real thresholds. Their time is that of the test, which lets minutes
pass, and so they look, report and renew several times a second: then nothing that lives falls
silent when the test moves on by some seconds. All servers evaluate at the same moments, as rarely
happens by chance: a second message would come from there.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import headrace
from headrace.alerts import loop as alert_loop
from headrace.alerts.evaluate import Evaluator
from headrace.dispatchers import heartbeat
from headrace.model import lease
from tests.alerts.shared import CLOCK, RELEASE, ROUNDS, SharedClock

FOLDER = Path(os.environ["ALERT_SCENE"])
PAUSE = 0.3

app = headrace.App(clock=SharedClock(FOLDER / CLOCK))


@app.task(queue="mail")
async def fine(text: str = "") -> None:
    """Complete."""


app.add_schedule(fine, "* * * * *", name="minutely", missed="all")


@app.task(queue="fails", retries=0)
async def broken() -> None:
    """Fail."""
    raise ValueError("it broke")


@app.task(queue="lanes")
async def held() -> None:
    """Run until the test lets it end."""
    while not (FOLDER / RELEASE).exists():  # noqa: ASYNC110 - another process says so
        await asyncio.sleep(0.05)


@app.task(queue="calls", retries=0, breaker=headrace.Breaker(failures=2, within=3_600, pause=30))
async def call() -> None:
    """Fail until the test says that it is mended."""
    if not (FOLDER / RELEASE).exists():
        raise ConnectionError("nobody answers")


def _next_moment(_: float) -> float:
    return PAUSE - time.time() % PAUSE


_round = Evaluator.round


async def _counted(evaluator: Evaluator) -> int:
    rules = await _round(evaluator)
    with (FOLDER / f"{ROUNDS}-{os.getpid()}").open("ab") as file:
        file.write(b".")
    return rules


setattr(Evaluator, "round", _counted)  # noqa: B010
setattr(alert_loop, "around", _next_moment)  # noqa: B010
setattr(heartbeat, "PAUSE", PAUSE)  # noqa: B010
setattr(lease, "LONGEST_RENEWAL_PAUSE", PAUSE)  # noqa: B010
