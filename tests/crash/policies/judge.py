"""What policies of keys and lanes promise, judged by what callers were told and what is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from headrace.model.insert_policy import EXPIRED, replaced_by
from headrace.model.job import Job
from headrace.upkeep.job_loops import EXPIRY_PAUSE
from tests.crash.policies.lives import EXPIRES, LONGEST_WAIT, WINDOW, Told

# Times of two steps of an engine that follow each other may be this far in the wrong order: some
# take their time before they wait for a lock. What is put off, or takes long, does so for longer.
SLACK = 0.3
# Of the clocks of a server and of callers, which are one.
MOMENT = 0.005
ROUNDED = 1e-4
# How much later than promised somebody may be on a busy machine.
BUSY = 5.0

ALWAYS_STORED = ("replace", "lane_replace", "lane_cancel_running", "lane_refuse", "expires")
"""Policies by which a call that is not refused has a job of its own."""

GIVES_WAY = ("replace", "lane_replace", "lane_cancel_running")
"""Policies by which a job may be cancelled for another."""


class Made(msgspec.Struct, kw_only=True):
    """A job that is stored. Its arguments name the call whose they are. Times are in seconds."""

    id: str
    place: str
    call: str
    created: float
    status: str
    state: str = ""
    run_at: float = 0.0
    finished: float | None = None
    # When it was first claimed, if it was claimed once.
    started: float | None = None
    token: int = 0
    error: str | None = None
    asked_to_stop: bool = False

    @property
    def policy(self) -> str:
        return self.place.split()[0]

    @property
    def over(self) -> bool:
        return self.finished is not None


class Call(msgspec.Struct, kw_only=True):
    """What a caller asked for, and what it was told, if it lived to hear it."""

    place: str
    asked: float
    got: float | None = None
    job: str | None = None
    refused: bool = False


def made_of(job: Job) -> Made:
    """What matters of a job as the engine shows it."""
    started = job.started_at.timestamp() if job.started_at and job.token == 1 else None
    return Made(
        id=job.id,
        place=f"{job.task} {job.args['key']}",
        call=job.args["call"],
        created=job.created_at.timestamp(),
        status=job.status.value,
        state=job.state.name.lower(),
        run_at=job.run_at.timestamp(),
        finished=job.completed_at.timestamp() if job.completed_at else None,
        started=started,
        token=job.token,
        error=job.error,
        asked_to_stop=job.cancel_requested,
    )


def calls_of(lines: Iterable[Told]) -> dict[str, Call]:
    """The calls that were written down, by their names."""
    calls: dict[str, Call] = {}
    for line in lines:
        if line.event == "asked":
            assert line.call not in calls, "two calls have one name"
            calls[line.call] = Call(place=line.place, asked=line.at)
        elif line.event in ("got", "refused"):
            call = calls[line.call]
            call.got, call.job, call.refused = line.at, line.job or None, line.event == "refused"
    return calls


class Judge:
    """Applies every rule. What breaks one is told in a sentence."""

    def __init__(
        self, calls: dict[str, Call], jobs: Iterable[Made], starts: Sequence[Told] = ()
    ) -> None:
        self.calls = calls
        self.jobs = {job.id: job for job in sorted(jobs, key=lambda job: (job.created, job.id))}
        self.starts: dict[str, list[Told]] = defaultdict(list)
        for line in starts:
            self.starts[line.job].append(line)
        self.places: dict[str, list[Made]] = defaultdict(list)
        for job in self.jobs.values():
            self.places[job.place].append(job)

    def findings(self) -> list[str]:
        """At the end, when nothing is left to do."""
        rules = (self.stored(), self.ended(), self.gave_way(), self.windows(), self.debounced())
        return [*(each for rule in rules for each in rule), *self.expired(), *self.refused()]

    def standing(self) -> list[str]:
        """While nobody claims anything: how many jobs stand at each place, and which."""
        found = [*self.stored(), *self.windows()]
        for place, jobs in self.places.items():
            policy = jobs[0].policy
            left = [job for job in jobs if not job.over]
            expected = [jobs[-1]]
            if policy in ("lane_replace", "lane_refuse", "debounce"):
                # The first has the place; or it gets the arguments of all others.
                expected = [jobs[0]]
            if policy == "lane_replace" and len(jobs) > 1:
                expected.append(jobs[-1])
            if policy not in ("window", "expires") and left != expected:
                found.append(f"{place}: {_names(left)} stand, expected {_names(expected)}")
            found += [f"{job.id} of {place} has started" for job in jobs if job.token]
        return found

    def stored(self) -> Iterator[str]:
        """What was acknowledged exists, once, and nothing that nobody asked for."""
        by_call: dict[str, list[Made]] = defaultdict(list)
        for job in self.jobs.values():
            by_call[job.call].append(job)
            call = self.calls.get(job.call)
            if call is None or call.place != job.place:
                yield f"{job.id} of {job.place}: nobody asked for it ({job.call})"
        for name, call in self.calls.items():
            own = [job.id for job in by_call[name]]
            if len(own) > 1:
                yield f"call {name} of {call.place} made {own}"
            if call.refused and own:
                yield f"call {name} was refused, and made {own}"
            if call.job is None:
                continue
            if call.job not in self.jobs or self.jobs[call.job].place != call.place:
                yield f"call {name} of {call.place} was told of {call.job}, which is not there"
            elif call.place.split()[0] in ALWAYS_STORED and own != [call.job]:
                yield f"call {name} was told of {call.job}, and made {own}"

    def ended(self) -> Iterator[str]:
        """Each job was completed, or cancelled for a reason of its policy; then it has not begun,
        unless running ones are to be stopped.
        """
        for job in self.jobs.values():
            about = f"{job.id} of {job.place}"
            if job.status == "completed":
                if not self.starts[job.id]:
                    yield f"{about} was completed, and never began"
            elif job.status != "cancelled":
                yield f"{about} is {job.status}: {job.error}"
            elif job.policy not in (*GIVES_WAY, "expires"):
                yield f"{about} was cancelled: {job.error}"
            elif job.policy != "lane_cancel_running" and (job.token or self.starts[job.id]):
                yield f"{about} was cancelled after it had begun: {job.error}"

    def gave_way(self) -> Iterator[str]:
        """Whoever gave way did so for the next at its place, and to that everybody had to."""
        for place, jobs in self.places.items():
            if jobs[0].policy not in GIVES_WAY:
                continue
            for job, following in pairwise(jobs):
                stays = job.policy == "lane_replace" or job.asked_to_stop
                until = job.started if job.policy == "replace" else job.finished
                if job.status == "cancelled":
                    if job.error != replaced_by(following.id):
                        yield f"{job.id} of {place}: {job.error}, expected {following.id}"
                elif not stays and until is not None and until > following.created + SLACK:
                    yield f"{job.id} of {place} did not give way to {following.id}"
            if jobs[-1].status == "cancelled":
                yield f"{jobs[-1].id} is the last of {place}, and was cancelled: {jobs[-1].error}"

    def windows(self) -> Iterator[str]:
        """One job in a window, and a new one after it."""
        for place, jobs in self.places.items():
            for job, following in pairwise(jobs if jobs[0].policy == "window" else []):
                if following.created - job.created < WINDOW - ROUNDED:
                    yield f"{following.id} of {place} is in the window of {job.id}"
        for name, call in self.calls.items():
            found = self.jobs.get(call.job or "")
            if found is None or found.policy != "window":
                continue
            if call.asked > found.created + WINDOW + MOMENT:
                yield f"call {name} of {call.place} got {call.job} after its window"

    def debounced(self) -> Iterator[str]:
        """A job has the arguments of the last call, no later time than promised, and no new one
        is made before it has begun.
        """
        told: dict[str, list[float]] = defaultdict(list)
        for call in self.calls.values():
            if call.job is not None:
                told[call.job].append(call.asked)
        for place, jobs in self.places.items():
            if jobs[0].policy != "debounce":
                continue
            for job in jobs:
                yield from self._changed(job, max(told[job.id], default=0.0))
            for job, following in pairwise(jobs):
                if job.started is not None and job.started > following.created + SLACK:
                    yield f"{following.id} of {place} was made before {job.id} had begun"

    def _changed(self, job: Made, last_asked: float) -> Iterator[str]:
        """What calls did to a debounced job, of which the last was asked for then."""
        about = f"{job.id} of {job.place}"
        begun = {line.call for line in self.starts[job.id]}
        if begun - {job.call}:
            yield f"{about} has {job.call}, and began with {begun}"
        last = self.calls.get(job.call)
        # Of one that was killed nobody knows when it was heard.
        if last is not None and last.got is not None:
            if last.job != job.id:
                yield f"{about} has {job.call}, which was told of {last.job}"
            if last_asked > last.got + MOMENT:
                yield f"{about} has {job.call}, which was not the last"
        if job.started is not None and last_asked > job.started + SLACK:
            yield f"{about} was changed after it had begun"
        # One whose worker died is due again later.
        if job.token <= 1 and job.run_at > job.created + LONGEST_WAIT + ROUNDED:
            yield f"{about} was put off for {job.run_at - job.created:.3f} s"

    def expired(self) -> Iterator[str]:
        """Nothing begins after its time, and what has not is cancelled soon."""
        for job in (job for job in self.jobs.values() if job.policy == "expires"):
            until = job.created + EXPIRES
            if job.started is not None and job.started > until + MOMENT:
                yield f"{job.id} began {job.started - until:.3f} s after its time"
            if job.status == "cancelled" and job.finished is not None:
                if job.error != EXPIRED:
                    yield f"{job.id} was cancelled: {job.error}"
                if not -ROUNDED <= job.finished - until <= EXPIRY_PAUSE + BUSY:
                    yield f"{job.id} was cancelled {job.finished - until:.3f} s after its time"

    def refused(self) -> Iterator[str]:
        """A lane that refuses has one job at a time."""
        for place, jobs in self.places.items():
            if jobs[0].policy == "lane_refuse":
                for job, following in pairwise(jobs):
                    if (job.finished or 0.0) > following.created + SLACK:
                        yield f"{following.id} of {place} was not refused for {job.id}"


def _names(jobs: Sequence[Made]) -> list[str]:
    return [f"{job.id} ({job.state})" for job in jobs]
