"""An App with tasks for the steps of workflows, and what they did."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from headrace import App, JobOrchestrator
from headrace.model.job import Job
from headrace.workflows.model import Workflow


class Scene:
    """An App with a few tasks, and a list of what they did."""

    def __init__(self, url: str, folder: Path) -> None:
        self.app = App(url, artifacts=str(folder / "artifacts"), workflows=str(folder / "none"))
        self.done: list[str] = []
        self.broken: set[str] = set()
        self.most = self.busy = 0
        app = self.app

        @app.task
        async def say(word: str, seconds: float = 0.0) -> dict[str, Any]:
            self.busy += 1
            self.most = max(self.most, self.busy)
            await asyncio.sleep(seconds)
            self.busy -= 1
            self.done.append(word)
            return {"word": word, "length": len(word)}

        @app.task(retries=0)
        async def fragile(word: str) -> str:
            self.done.append(word)
            if word in self.broken:
                raise ValueError(f"{word} is broken")
            return word.upper()

        @app.task
        async def numbers(count: int) -> list[int]:
            return list(range(count))

        @app.task
        async def add(values: list[int]) -> int:
            return sum(values)

        @app.task
        async def double(value: int) -> int:
            self.done.append(f"double {value}")
            return 2 * value

    def workflow(self, *steps: dict[str, Any], **fields: Any) -> Workflow:
        content = {"id": "w", "steps": steps, **fields}
        return self.app.workflows.add(msgspec.convert(content, Workflow))

    async def work(self) -> None:
        orchestrator = JobOrchestrator(self.app, max_workers=8)
        await orchestrator.run_until_idle()

    async def run(self, params: dict[str, Any] | None = None, **options: Any) -> Job:
        job = await self.app.workflows.run("w", params, **options)
        await self.work()
        return await self.app.get(job.id)

    async def statuses(self, job: Job) -> dict[str, str]:
        view = await self.app.workflows.look(job)
        return {step.id: step.status for step in view.steps}


def say(step_id: str, *needs: str, **fields: Any) -> dict[str, Any]:
    return {"id": step_id, "task": "say", "params": {"word": step_id}, "needs": needs, **fields}
