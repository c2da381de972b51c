"""A model of one run: what was asked for, what was done, and what may still be done.

The run itself is the real one. Its steps are done here, one by one, so that they can fail, be lost
with their worker, or wait. `allowed` says how often each item of a step may have been done so far:
once for the run, and once more each time that somebody has asked for it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

import headrace
from headrace import JobFilter, JobOrchestrator, job_tree
from headrace.admin.bulk import BulkRecord
from headrace.admin.bulk_runner import BulkRunner
from headrace.clock import Clock
from headrace.errors import JobConflict
from headrace.model.job import ClaimedJob, Job
from headrace.model.status import Status
from headrace.upkeep.lost_jobs import Sweep
from headrace.workflows.model import Workflow
from tests.support.verbs import LEASE, a_worker, claim, complete, fail

Item = tuple[str, int]
EVERY_ROUND = 12


class PlannedStep(NamedTuple):
    needs: frozenset[int]
    items: int | None
    runs: bool
    may_fail: bool


Action = tuple[Any, ...]


class Model:
    """One run on a real engine, and the account of it."""

    numbers = itertools.count()

    def __init__(self, app: headrace.App, clock: Clock, steps: Sequence[PlannedStep]) -> None:
        self.app, self.clock = app, clock
        number = next(self.numbers)
        self.queue, self.step_queue = f"runs{number}", f"steps{number}"
        self.workflow = app.workflows.add(
            msgspec.convert(
                {
                    "id": f"w{number}",
                    "queue": self.queue,
                    "steps": [self._step(index, each) for index, each in enumerate(steps)],
                },
                Workflow,
            )
        )
        self.items: dict[str, list[int]] = {
            f"s{index}": list(range(each.items)) if each.items is not None else [0]
            for index, each in enumerate(steps)
        }
        self.effects: dict[Item, int] = defaultdict(int)
        self.allowed: dict[Item, int] = {
            (step, item): 1 for step, items in self.items.items() for item in items
        }
        self.broken: set[str] = set()
        self.run_id = ""

    def _step(self, index: int, planned: PlannedStep) -> dict[str, Any]:
        each = {} if planned.items is None else {"each": list(range(planned.items))}
        return {
            "id": f"s{index}",
            "task": "effect",
            "queue": self.step_queue,
            "params": {"step": f"s{index}", "item": "${item}" if each else 0},
            "needs": [f"s{needed}" for needed in sorted(planned.needs)],
            "when": planned.runs,
            "on_failure": "continue" if planned.may_fail else "fail",
            **each,
        }

    # -- what happens --------------------------------------------------------------------------

    async def begin(self) -> None:
        self.run_id = (await self.app.workflows.run(self.workflow.id)).id

    async def act(self, action: Action) -> None:
        """Do one thing, then look whether anything was done that nobody had asked for."""
        name, *given = action
        await getattr(self, f"do_{name}")(*given)
        self.check()

    def check(self) -> None:
        too_often = {
            item: (done, self.allowed[item])
            for item, done in self.effects.items()
            if done > self.allowed[item]
        }
        assert not too_often, f"done, allowed: {too_often}"

    async def do_advance(self) -> None:
        """Let the run go as far as it can."""
        await self.app.engine.wake([self.run_id])
        await JobOrchestrator(self.app, queues=[self.queue], max_workers=1).run_until_idle()

    async def do_steps(self, count: int) -> None:
        """Do some of the jobs that are ready."""
        engine = self.app.engine
        done = await self.take(count, [self.step_queue])
        for job in done:
            step = self._effect(job)
            assert await (fail if step in self.broken else complete)(engine, job)
        await job_tree.wake_parents(engine, [job.id for job in done])

    async def do_kill(self, count: int, done: bool) -> None:
        """A worker takes jobs and is never heard of again, after it has done them or before."""
        for job in await self.take(count, self.queues):
            if done and job.task == "effect":
                self._effect(job)

    async def do_sweep(self) -> None:
        """Others find out about it."""
        self.clock.advance(LEASE + 1)
        await Sweep(engine=self.app.engine, clock=self.clock, lease_seconds=LEASE).tick()
        await self.app.engine.promote_due(100)

    async def do_break(self, step: int) -> None:
        self.broken.add(f"s{step}")

    async def do_heal(self) -> None:
        self.broken.clear()

    async def do_cancel(self) -> None:
        run = await self.run()
        answer = await job_tree.cancel(self.app.engine, [self.run_id])
        assert bool(answer) is not run.status.final
        if answer:
            # Nothing is done any more, until somebody asks for it.
            self.allowed = {item: self.effects[item] for item in self.allowed}

    # -- what people ask for -------------------------------------------------------------------

    async def do_retry(self) -> None:
        run, redone = await self.run(), await self.redone()
        last = await self.last_jobs()
        try:
            steps = await self.app.workflows.retry(run)
        except JobConflict:
            assert not run.status.final or await self.stopping()
            return
        assert run.status.final
        assert set(steps) == redone
        self._asked(redone, last)

    async def do_retry_from(self, step: int) -> None:
        run, name = await self.run(), f"s{step % len(self.items)}"
        begun = {entry.name for entry in await self.app.engine.entries(self.run_id)}
        try:
            steps = await self.app.workflows.retry(run, name)
        except JobConflict:
            assert not run.status.final
            return
        assert set(steps) == self.workflow.after(name)
        # A run that was cut short goes on as well: with what it had not come to.
        for item in [item for item in self.allowed if item[0] in steps or item[0] not in begun]:
            self.allowed[item] = self.effects[item] + 1

    async def do_retry_job(self, index: int) -> None:
        """Ask for the job of a step, one of all that there ever were."""
        jobs = await self.children()
        if not jobs:
            return
        job = jobs[index % len(jobs)]
        run, redone, last = await self.run(), await self.redone(), await self.last_jobs()
        try:
            await self.app.retry(job.id)
        except JobConflict:
            return
        if not job.status.final:
            return  # a scheduled one: sooner, not more often
        item = self.item_of(job)
        assert run.status.final
        assert last[item].id == job.id, "another has taken its place"
        if self.alone(run, job):
            self.allowed[item] = self.effects[item] + 1
        else:
            self._asked(redone, last)

    async def do_bulk(self, background: bool) -> None:
        """Ask for everything that has failed."""
        run, redone, last = await self.run(), await self.redone(), await self.last_jobs()
        stopping = await self.stopping()
        wanted = JobFilter(statuses=(Status.FAILED,), queues=tuple(self.queues))
        if background:
            made = await self.app.start_bulk("retry", wanted)
            await BulkRunner(self.app, _nobody, lease=30.0, batch=2).tick()
            assert (await self.app.bulk_action(made.id)).state == "finished"
        else:
            await self.app.bulk("retry", wanted)
        if not run.status.final:
            return
        for item, job in last.items():
            if job.status is Status.FAILED and self.alone(run, job):
                self.allowed[item] = self.effects[item] + 1
        if run.status is Status.FAILED and not stopping:
            self._asked(redone, last)

    async def do_everything_at_once(self, index: int) -> None:
        """Ask for the run, for a step of it, and for all that failed; workers do it meanwhile."""
        for ask in (self.do_retry_job(index), self.do_bulk(False), self.do_retry()):
            await ask
            self.check()
            await self.do_steps(1)

    def _asked(self, steps: set[str], last: dict[Item, Job]) -> None:
        """Somebody wants these steps: anew, where what they depend on is; else what is not done."""
        for item in self.allowed:
            step = self.workflow.step(item[0])
            if step is None or step.id not in steps:
                continue
            anew = not steps.isdisjoint(step.depends_on)
            if anew or item not in last or last[item].status is not Status.COMPLETED:
                self.allowed[item] = self.effects[item] + 1

    # -- what there is -------------------------------------------------------------------------

    @property
    def queues(self) -> list[str]:
        return [self.queue, self.step_queue]

    async def take(self, count: int, queues: list[str]) -> list[ClaimedJob]:
        """Claim jobs as a worker that is new."""
        name = f"worker{next(self.numbers)}"
        return await claim(self.app.engine, await a_worker(self.app.engine, name), count, queues)

    def _effect(self, job: ClaimedJob) -> str:
        args = msgspec.json.decode(job.args)
        self.effects[args["step"], args["item"]] += 1
        return str(args["step"])

    def item_of(self, job: Job) -> Item:
        return job.args["step"], job.args["item"]

    def alone(self, run: Job, job: Job) -> bool:
        """Whether a run does not depend on this job being done again."""
        step = self.workflow.step(job.group or "")
        assert step is not None
        return (
            run.status is Status.COMPLETED
            or job.status is Status.COMPLETED
            or step.on_failure == "continue"
        )

    async def run(self) -> Job:
        return await self.app.get(self.run_id)

    async def children(self) -> list[Job]:
        page = await self.app.list(JobFilter(parent=self.run_id), limit=1_000)
        return sorted(page.jobs, key=lambda job: job.id)

    async def last_jobs(self) -> dict[Item, Job]:
        """The latest job of each item."""
        return {self.item_of(job): job for job in await self.children()}

    async def stopping(self) -> bool:
        return any(job.cancel_requested and not job.status.final for job in await self.children())

    async def redone(self) -> set[str]:
        """The steps that a plain retry of the run does, by what is seen of the run."""
        run = await self.run()
        view = await self.app.workflows.look(run)
        may_fail = {step.id for step in self.workflow.steps if step.on_failure == "continue"}
        failed = {step.id for step in view.steps if step.status == "failed"}
        over = {step.id for step in view.steps if step.status in ("completed", "skipped")}
        not_over = {step.id for step in view.steps} - over - failed
        first = failed if run.status is Status.COMPLETED else not_over | (failed - may_fail)
        return {after for name in first for after in self.workflow.after(name)}

    async def to_the_end(self) -> None:
        """When nothing breaks any more, the run can be completed, and every step was done."""
        await self.act(("heal",))
        for _ in range(EVERY_ROUND):
            await self.act(("sweep",))
            await self.act(("advance",))
            await self.act(("steps", 100))
            run = await self.run()
            if run.status is Status.COMPLETED:
                break
            if run.status.final:
                await self.act(("retry",))
        run = await self.run()
        assert (run.status, run.error) == (Status.COMPLETED, None)
        view = {step.id: step for step in (await self.app.workflows.look(run)).steps}
        for item in self.allowed:
            assert self.effects[item] >= (view[item[0]].status == "completed"), item


async def _nobody(bulk_id: str, record: BulkRecord) -> None:
    """The audit log is not looked at."""
