"""The judge: compares the log outside the engine with what the store says at the end. Pure.

Each rule is a function that answers what breaks it. `tests/chaos/test_judge.py` breaks each of
them by hand, `tests/chaos/test_guards.py` by real runs whose guard is switched off.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaos.history import History
from chaos.journal import Line
from chaos.lane_rules import order, overlaps
from chaos.tasks import GOOD
from headrace.model.job import Job

FINAL = frozenset({"completed", "failed", "timeout", "cancelled"})
FINAL_OUTCOMES = frozenset({"Completed", "Failed", "TimedOut", "Cancelled"})


@dataclass(frozen=True)
class Violation:
    """A promise that was broken, and by which job."""

    rule: str
    job: str
    detail: str


@dataclass(frozen=True)
class Final:
    """A job as the store has it at the end."""

    id: str
    task: str
    status: str
    token: int
    result: Any = None
    key: str | None = None
    error: str | None = None

    @classmethod
    def of(cls, job: Job) -> Final:
        """What is judged of a job."""
        return cls(job.id, job.task, job.status.value, job.token, job.result, job.key, job.error)


@dataclass
class Judgement:
    """Everything that was found. `counts` tells how much was looked at."""

    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    # Seconds from the death of a process to the next attempt at what it ran.
    take_overs: list[float] = field(default_factory=list)

    @property
    def by_rule(self) -> Counter[str]:
        """How many violations of each rule."""
        return Counter(each.rule for each in self.violations)

    def judge_recovery(self, recoveries: Sequence[tuple[str, float | None]], limit: float) -> None:
        """The first job is completed within `limit` seconds after every outage."""
        for fault, seconds in recoveries:
            if seconds is None or seconds > limit:
                shown = "not seen" if seconds is None else f"after {seconds:.1f} s"
                detail = f"{fault}: first job {shown}, limit {limit:g} s"
                self.violations.append(Violation("late recovery", "", detail))


def judge(lines: Sequence[Line], finals: Sequence[Final], *, audit: Sequence[str]) -> Judgement:
    """Apply every rule."""
    history = History.of(lines)
    stored = {each.id: each for each in finals}
    violations = [found for rule in RULES for found in rule(history, stored)]
    violations += [Violation("audit", "", finding) for finding in audit]
    acknowledged = history.acknowledged
    return Judgement(
        violations,
        {
            "acknowledged": len(acknowledged),
            "completed": sum(
                stored[job].status == "completed" for job in acknowledged if job in stored
            ),
            "begun": sum(len(each) for each in history.begins.values()),
            "runs again": sum(len(each) - 1 for each in history.begins.values()),
            "refused outcomes": history.refused,
            "lanes": len(history.lanes),
            "stages kept": len(history.kept),
        },
        history.take_overs(),
    )


Stored = dict[str, Final]
Found = Iterator[Violation]


def lost(history: History, stored: Stored) -> Found:
    """A job that was acknowledged is there, ends, and completes if its handler is a good one."""
    for job, line in history.acknowledged.items():
        final = stored.get(job)
        if final is None:
            yield Violation("lost", job, f"{line.task} was acknowledged and is not in the store")
        elif final.status not in FINAL:
            yield Violation("not ended", job, f"{line.task} is {final.status}")
        elif line.task in GOOD and final.status != "completed":
            yield Violation("not completed", job, f"{line.task} {final.status}: {final.error}")


def token_twice(history: History, stored: Stored) -> Found:
    """No handler is called twice for one token."""
    for job, begins in history.begins.items():
        for token, count in Counter(each.token for each in begins).items():
            if count > 1:
                yield Violation("token run twice", job, f"token {token} was begun {count} times")


def stale(history: History, stored: Stored) -> Found:
    """The result that counts is that of the last attempt, and of this job."""
    for job, final in stored.items():
        begins = history.begins.get(job, [])
        newest = max((each.token for each in begins), default=0)
        if final.status in FINAL and newest > final.token:
            detail = f"ended under token {final.token}, but token {newest} was begun"
            yield Violation("stale outcome", job, detail)
        if final.status != "completed" or not isinstance(final.result, dict):
            continue
        result = final.result
        number = begins[0].number if begins else None
        if result.get("number") != number:
            detail = f"has the result of number {result.get('number')}, is number {number}"
            yield Violation("foreign result", job, detail)
        elif result.get("token") != final.token:
            detail = f"ended under token {final.token} with a result of {result.get('token')}"
            yield Violation("stale outcome", job, detail)
        elif (job, final.token, result.get("nonce")) not in history.ends:
            yield Violation("stale outcome", job, "no attempt has ended with its result")


def recorded_once(history: History, stored: Stored) -> Found:
    """The engine takes one final outcome of each job."""
    taken: dict[str, list[Line]] = defaultdict(list)
    for line in history.settled:
        if line.name in FINAL_OUTCOMES:
            taken[line.job].append(line)
    for job, outcomes in taken.items():
        if len(outcomes) > 1:
            told = ", ".join(f"{each.name} of token {each.token}" for each in outcomes)
            yield Violation("recorded twice", job, told)


def stages(history: History, stored: Stored) -> Found:
    """A stage whose result was kept is not run again by an attempt that is still the owner."""
    for line in history.stages:
        kept = history.kept.get((line.job, line.name))
        # An older attempt, which does not know yet that it has lost its lease, changes nothing.
        if kept is not None and line.at > kept.at and line.token >= kept.token:
            detail = f"stage {line.name}, kept by token {kept.token}, was run by {line.token}"
            yield Violation("stage run again", line.job, detail)


def one_for_each_key(history: History, stored: Stored) -> Found:
    """However often a request was repeated, it has made one job."""
    jobs: dict[tuple[str, str], str] = {}
    for final in stored.values():
        if final.key is not None:
            first = jobs.setdefault((final.task, final.key), final.id)
            if first != final.id:
                yield Violation("key doubled", final.id, f"{final.key!r} has job {first} as well")


def lanes(history: History, stored: Stored) -> Found:
    """A lane of width 1 has one owner at a time, and its jobs begin in order."""
    for lane, begins in history.lanes.items():
        for first, second in overlaps(history, begins):
            detail = f"{lane}: token {second.token} began while {first.job} ran"
            yield Violation("lane overlap", second.job, detail)
        for earlier, later in order(history, lane):
            yield Violation("lane order", later, f"{lane}: began before {earlier}")


RULES: tuple[Callable[[History, Stored], Found], ...] = (
    lost,
    token_twice,
    stale,
    recorded_once,
    stages,
    one_for_each_key,
    lanes,
)
