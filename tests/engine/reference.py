"""The contract as a plain Python model: slow, in memory, and simple enough to be seen to be right.

`test_state_machine.py` drives it beside each engine. Every move of a job is checked against
`tests.engine.transitions`. What the contract leaves open (which of several equals is due or
pruned first) is settled by looking at the engine: the machine tells the model what it saw.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from headrace.model.durable.writes import Note
from headrace.model.job import Inserted, NewJob
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Released,
    Reserved,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.status import State
from headrace.model.views import RecordChange
from tests.engine.reference_parts import NO_ERROR, ModelJob
from tests.engine.reference_waits import Waits


class Reference(Waits):
    """Each verb answers what an engine has to answer."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[tuple[str, str], str] = {}
        self.paused: set[str] = set()

    def insert(self, jobs: Sequence[NewJob], record: RecordChange | None = None) -> list[Inserted]:
        if record is not None:
            self.put_record(record)
        self.step += 1
        return self._store(jobs)

    def _store(self, jobs: Sequence[NewJob]) -> list[Inserted]:
        answers, stored = [], []
        known = {job_id: job_id for job_id in self.jobs}
        for new in jobs:
            owner = None if new.key is None else self.keys.get((new.task, new.key))
            existing = known.get(new.id, owner)
            known[new.id] = existing or new.id
            if existing is not None:
                answers.append(Inserted(existing, False))
                continue
            later = new.delay > 0
            first = State.SCHEDULED if later else State.WAITING if new.lane else State.READY
            job = ModelJob(new, self.arrive(), first, self.now + new.delay, self.step)
            job.stored_in = self.step
            job.expires_at = None if new.expires_in is None else self.now + new.expires_in
            self.jobs[new.id] = job
            if new.key is not None:
                self.keys[new.task, new.key] = new.id
            if not later:
                self.set_width(job, new=True)
            stored.append(job)
            answers.append(Inserted(new.id, True))
        self.arrange(stored)
        return answers

    def settle(self, settlements: Sequence[Settlement]) -> set[str]:
        """Record outcomes, then store what follows from those that count; answers the refused ids.

        Either all have followers or none: of the others it is open when exactly they are recorded.
        """
        self.step += 1
        follow: list[NewJob] = []
        refused, settled = set(), []
        reserved: set[tuple[str, str]] = set()
        for settlement in settlements:
            job = self.jobs.get(settlement.job_id)
            if job is None or job.state is not State.RUNNING or job.token != settlement.token:
                refused.add(settlement.job_id)
                continue
            self._settle(job, settlement)
            settled.append(job)
            follow += settlement.follow
            if job.reserved:
                reserved.add((job.new.queue, job.new.task))
        self.arrange(settled)
        for job in self.in_state(State.READY):  # a walk has less than are looked at
            job.reserved = job.reserved or (job.new.queue, job.new.task) in reserved
        self._store(follow)
        return refused

    def _settle(self, job: ModelJob, settlement: Settlement) -> None:
        outcome = settlement.outcome
        asked = job.cancel_reason
        if asked is not None and isinstance(
            outcome, Retry | Snoozed | Released | Reserved | Cancelled
        ):
            outcome = Cancelled(asked)
        if not isinstance(outcome, Released | Reserved):
            job.expires_at = None
        match outcome:
            case Completed():
                job.progress = 100.0
                self.finish(job, State.COMPLETED)
            case Failed(failure=failure):
                self.finish(job, State.FAILED, (failure.type, failure.message))
            case TimedOut(failure=failure):
                self.finish(job, State.TIMEOUT, (failure.type, failure.message))
            case Cancelled(reason=reason):
                self.finish(job, State.CANCELLED, (None, reason))
            case Released() | Reserved():
                job.attempt -= 1
                job.worker = None
                job.move(State.READY)
                job.reserved = isinstance(outcome, Reserved)
            case Retry(delay=delay) | Snoozed(delay=delay):
                if isinstance(outcome, Retry):
                    job.error = (outcome.failure.type, outcome.failure.message)
                else:
                    job.attempt -= 1
                job.worker = None
                job.pinned = job.place is not None and job.new.hold
                job.run_at, job.step = self.now + delay, self.step
                if delay > 0:
                    job.move(State.SCHEDULED)
                    job.awaits = outcome.awaits if isinstance(outcome, Snoozed) else ()
                else:
                    self.make_pending(job)

    def claim(self, worker_id: str, queues: Sequence[str] | None, limit: int) -> list[ModelJob]:
        if not self.may_claim(worker_id):
            return []
        late = self.late()
        served = [
            job
            for job in self.in_state(State.READY)
            if job.new.queue not in self.paused
            and job.new.id not in late
            and (queues is None or job.new.queue in queues)
            and (not job.reserved or self.workers[worker_id].knows(job.new.task))
        ][:limit]
        for job in served:
            job.move(State.RUNNING)
            job.token += 1
            job.attempt += 1
            job.worker = worker_id
        return served

    def note(self, notes: Sequence[Note]) -> set[str]:
        """Record what running attempts tell; answers the refused ids."""
        refused = set()
        for note in notes:
            job = self.jobs.get(note.job_id)
            if job is None or job.state is not State.RUNNING or job.token != note.token:
                refused.add(note.job_id)
                continue
            if note.progress is not None:
                job.progress = note.progress
            for entry in note.entries:
                job.entries[entry.kind, entry.name] = (entry.body, note.token)
        return refused

    def due(self, limit: int, moved: set[str]) -> int:
        """Make scheduled jobs pending; `moved` are those that the engine chose, earliest first."""
        self.step += 1
        candidates = {
            job.new.id: job for job in self.in_state(State.SCHEDULED) if job.run_at <= self.now
        }
        check_oldest(candidates, moved, lambda job: (job.run_at, job.step))
        chosen = sorted(
            (candidates[each] for each in moved), key=lambda job: (job.run_at, job.step, job.number)
        )
        for job in chosen:
            self.make_pending(job, new=job.token == 0)
        self.arrange(chosen)
        return min(limit, len(candidates))

    def next_due(self) -> float | None:
        """In how many seconds the next scheduled job is due."""
        times = [job.run_at for job in self.in_state(State.SCHEDULED)]
        return max(min(times) - self.now, 0.0) if times else None

    def cancel(self, ids: Sequence[str], reason: str) -> dict[str, bool]:
        self.step += 1
        answer, freed = {}, []
        for job_id in ids:
            job = self.jobs.get(job_id)
            if job is None or job.state.status.final:
                continue
            if job.state is State.RUNNING:
                job.cancel_reason = job.cancel_reason or reason
                answer[job_id] = False
            else:
                self.finish(job, State.CANCELLED, (None, reason))
                answer[job_id] = True
                freed.append(job)
        self.arrange(freed)
        return answer

    def rerun(self, ids: Sequence[str]) -> list[str]:
        moved = []
        for job_id in ids:
            job = self.jobs.get(job_id)
            if job is None or not (job.state is State.SCHEDULED or job.state.status.final):
                continue
            new = job.state is State.SCHEDULED and job.token == 0
            if job.state.status.final:
                job.attempt, job.number, job.progress = 0, self.arrive(), 0.0
                job.cancel_reason, job.error, job.worker = None, NO_ERROR, None
            job.run_at = self.now
            self.make_pending(job, new=new)
            moved.append(job_id)
        self.arrange(self.jobs[each] for each in moved)
        return moved

    def rerun_unchanged(self, tokens: dict[str, int]) -> list[str]:
        jobs = {each: self.jobs.get(each) for each in tokens}
        return self.rerun(
            [
                each
                for each, job in jobs.items()
                if job is not None and job.state.status.final and job.token == tokens[each]
            ]
        )

    def rerun_without(self, job_id: str, names: Sequence[tuple[str, str]], token: int) -> bool:
        job = self.jobs.get(job_id)
        if job is None or not job.state.status.final or job.token != token:
            return False
        for name in names:
            job.entries.pop(name, None)
        return self.rerun([job_id]) == [job_id]

    def prune(
        self, older_than: float | None, keep: int | None, limit: int, gone: set[str]
    ) -> range:
        """Forget finished jobs; `gone` are those that the engine chose, oldest first.

        Answers how many may go. That is open where some of those that finished in the same step
        are among the newest and some are spared.
        """
        # Which of those that finished together are beyond `keep` is open, and with it who stays.
        surely, perhaps = (self._spared(older_than, keep, ties=ties) for ties in (False, True))
        free = {job.new.id: job for job in self.finished() if job.new.id not in surely}
        check_oldest(free, gone, _age_of_finished, perhaps)
        old = [job.new.id for job in free.values() if self._is_old(job, older_than)]
        fewest, most = (0, 0) if keep is None else self._beyond(keep, surely, perhaps)
        fewest = max(fewest, sum(each not in perhaps for each in old))
        most = max(most, len(old))
        for job_id in gone:
            job = self.jobs.pop(job_id)
            self.leave_word(job)
            if job.new.key is not None and self.keys.get((job.new.task, job.new.key)) == job_id:
                del self.keys[job.new.task, job.new.key]
        return range(min(limit, fewest), min(limit, most) + 1)

    def _is_old(self, job: ModelJob, older_than: float | None) -> bool:
        return older_than is not None and job.finished_at < self.now - older_than

    def _spared(self, older_than: float | None, keep: int | None, *, ties: bool) -> set[str]:
        """Finished jobs whose parent stays; with `ties` also those of which that is open."""
        ages = [_age_of_finished(job) for job in self.finished()]

        def stays(job_id: str | None, passed: tuple[str, ...] = ()) -> bool:
            job = self.jobs.get(job_id or "")
            if job is None or job.new.id in passed:
                return False
            if not job.state.status.final:
                return True
            age = _age_of_finished(job)
            newer = sum(each > age or (each == age and not ties) for each in ages)
            # It is one of its equals itself.
            beyond = keep is not None and newer - (not ties) >= keep
            if not beyond and not self._is_old(job, older_than):
                return True
            return stays(job.new.parent, (*passed, job.new.id))

        return {job.new.id for job in self.finished() if stays(job.new.parent)}

    def _beyond(self, keep: int, surely: set[str], perhaps: set[str]) -> tuple[int, int]:
        """At least and at most how many of those beyond the newest `keep` are not spared."""
        finished = sorted(self.finished(), key=_age_of_finished)
        surplus = len(finished) - keep
        if surplus <= 0:
            return 0, 0
        boundary = _age_of_finished(finished[surplus - 1])
        older = [job for job in finished if _age_of_finished(job) < boundary]
        equals = [job for job in finished if _age_of_finished(job) == boundary]
        left = surplus - len(older)
        fewest = sum(job.new.id not in perhaps for job in older)
        fewest += max(left - sum(job.new.id in perhaps for job in equals), 0)
        most = sum(job.new.id not in surely for job in older)
        most += min(left, sum(job.new.id not in surely for job in equals))
        return fewest, most


def _age_of_finished(job: ModelJob) -> tuple[float, int]:
    return (job.finished_at, job.step)


def check_oldest(
    candidates: dict[str, ModelJob],
    chosen: set[str],
    age: Callable[[ModelJob], tuple[float, int]],
    perhaps: Collection[str] = (),
) -> None:
    """The engine may choose among equals only; everybody older comes first. Some may be left."""
    assert chosen <= candidates.keys(), f"{chosen - candidates.keys()} should have stayed"
    left = [age(job) for each, job in candidates.items() if each not in {*chosen, *perhaps}]
    if chosen and left:
        assert max(age(candidates[each]) for each in chosen) <= min(left), "not the oldest first"
