"""The program that dispatchers of tests run with, and the point where one kills itself.

`HEADRACE_TEST_DIE=after:7` ends the process without warning once its seventh batch is stored and
before the broker is told; `before:7` right before it is stored.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import headrace
from headrace.engine.base import Engine
from headrace.model.job import Inserted, NewJob

DIE = "HEADRACE_TEST_DIE"


def register(app: headrace.App) -> headrace.App:
    """The tasks that messages of tests ask for."""

    @app.task
    async def work(number: int, text: str = "") -> None: ...

    @app.task(queue="scans", lane="platform:{platform}", retries=1)
    async def scan(platform: str) -> None: ...

    return app


def mortal(kind: type[Engine], when: str) -> None:
    """Put the point of death around storing."""
    where, _, count = when.partition(":")
    insert = kind.insert
    left = int(count)

    async def watched(engine: Engine, jobs: Sequence[NewJob], **options: Any) -> list[Inserted]:
        nonlocal left
        left -= 1
        last = left == 0  # now: two may be stored at the same time
        if last and where == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answers = await insert(engine, jobs, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answers

    # Of the class, because the command line may give the App another engine.
    setattr(kind, "insert", watched)  # noqa: B010


app = register(headrace.App())
if os.environ.get(DIE):
    mortal(type(app.engine), os.environ[DIE])
