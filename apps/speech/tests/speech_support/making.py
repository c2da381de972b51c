"""Short words for tests: an App with the bundle, scripts, and what became of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import headrace
from headrace.bundles import Setup
from headrace.upkeep.files import Files
from headrace_speech.bundle import bundle
from headrace_speech.dialogues import Dialogues
from headrace_speech.script import Script, Turn
from headrace_speech.service import SpeechService


@dataclass
class Made:
    """An open App with the bundle."""

    app: headrace.App
    setup: Setup
    service: SpeechService
    dialogues: Dialogues

    async def prune(self) -> None:
        """Delete all finished jobs, with the files that nobody keeps."""
        engine = self.app.engine
        while await engine.prune(older_than=0.0, keep=None, limit=100):
            pass
        await Files(
            engine=engine, artifacts=self.app.artifact_store, clock=self.app.clock
        ).remove_pruned()

    async def hand_in(self, *texts: str, user: str = "ada", **fields: Any) -> str:
        """Hand in a script for the hosted provider; return the id of its job."""
        accepted = await self.dialogues.hand_in(a_script(*texts, **fields), user=user)
        return accepted.job_id


def a_script(*texts: str, **fields: Any) -> Script:
    """A script of two roles that take turns, spoken by the test's server."""
    roles = ("Ann", "Bob")
    turns = [Turn(role=roles[place % 2], text=text) for place, text in enumerate(texts)]
    given = {"provider": "openai", "voice_assignments": {"Ann": "alloy", "Bob": "echo"}}
    return Script(**{"turns": turns, **given, **fields})


def a_local_script(
    *texts: str, voices: Sequence[str] = ("ko", "en-us+f3"), **fields: Any
) -> Script:
    """The same by the voices of this machine."""
    named = dict(zip(("Ann", "Bob"), voices, strict=True))
    return a_script(*texts, **{"provider": "local", "voice_assignments": named, **fields})


@asynccontextmanager
async def made(
    url: str, tables: str, artifacts: str, *, clock: headrace.Clock | None = None, **more: Any
) -> AsyncIterator[Made]:
    """An App on a store, with its files in a folder or in a bucket, and its tables there or, if
    that is empty, beside the jobs.
    """
    app = headrace.App(url, artifacts=artifacts, clock=clock)
    settings = {"processes": 1} | ({"url": tables} if tables else {}) | more
    setup = app.load_bundle(bundle, **settings)
    service = SpeechService(setup)
    async with app:
        try:
            yield Made(app, setup, service, Dialogues(service))
        finally:
            service.close()
