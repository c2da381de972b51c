"""The part of the random walks about jobs that wait or expire, their families, and records."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from headrace.model.durable.awaited import EVENT, AwaitedChildren, AwaitedEvent
from headrace.model.job import JobFilter, NewJob
from headrace.model.outcome import Outcome, Settlement, Snoozed
from headrace.model.status import State
from headrace.model.views import RecordChange
from tests.engine.reference import check_oldest
from tests.engine.side_by_side import MOMENT, SideBySide

STEP = 100.0
QUEUES = ["a", "b"]
TASKS = ["work", "work", "foreign"]
GROUPS = ["g", "h"]
EVENTS = ["e", "f"]

WAITS: list[Outcome] = [
    Snoozed(STEP, (AwaitedEvent("e"),)),
    Snoozed(2 * STEP, (AwaitedChildren(),)),
    Snoozed(2 * STEP, (AwaitedChildren(left=2),)),
    Snoozed(2 * STEP, (AwaitedChildren("g", 1), AwaitedEvent("f"))),
    Snoozed(0, (AwaitedChildren("h"),)),
]

# Which one is meant follows from what there is: the number is taken modulo the number of jobs.
picks = st.integers(0, 30)
requests = st.fixed_dictionaries(
    {
        "task": st.sampled_from(TASKS),
        "queue": st.sampled_from(QUEUES),
        "lane": st.sampled_from(["x", "x", "y", None]),
        "width": st.sampled_from([1, 1, 2, 3]),
        "priority": st.sampled_from([0, 0, 0, 5, -5]),
        "key": st.sampled_from([None, None, "k1", "k2"]),
        "delay": st.sampled_from([0.0, 0.0, 0.0, STEP, 2 * STEP]),
        "hold": st.booleans(),
        # Between two steps: it never matters how fast the machine is.
        "expires_in": st.sampled_from([None, None, None, None, 0.5 * STEP, 1.5 * STEP]),
        "family": st.none() | st.tuples(picks, st.sampled_from([None, *GROUPS])),
    }
)


class Families(SideBySide):
    """Jobs make jobs and wait for them, and for what comes from outside."""

    def request(self, fields: dict[str, Any], job_id: str | None = None) -> NewJob:
        """A new job, made by one that exists, by one that never did, or by nobody."""
        fields = dict(fields)
        family = fields.pop("family")
        if family is not None:
            maker = self.pick(family[0], *State)
            fields["parent"] = self.new_id() if maker is None else maker.new.id
            fields["group"] = family[1]
        return NewJob(id=job_id or self.new_id(), **fields)

    @rule(
        wanted=st.lists(requests, max_size=2),
        key=st.sampled_from(["r", "s"]),
        version=st.sampled_from(["any", "none", "good", "good", "bad"]),
    )
    def insert_with_record(self, wanted: list[dict[str, Any]], key: str, version: str) -> None:
        found = self.model.records.get(("cron", key), 0)
        expected = {"any": None, "none": 0, "good": found, "bad": found + 1}[version]
        change = RecordChange("cron", key, b"body", expected)
        self.store([self.request(fields) for fields in wanted], change)

    @rule(
        wanted=requests,
        children=st.lists(requests, max_size=4),
        wait=st.sampled_from(WAITS),
        over=st.integers(0, 3),
    )
    def make_family(
        self, wanted: dict[str, Any], children: list[dict[str, Any]], wait: Outcome, over: int
    ) -> None:
        """A job makes others and waits, and some of them are over. Rare if only single steps made
        it come about.
        """
        parent = self.request(wanted | {"priority": 9, "delay": 0.0, "lane": None, "key": None})
        self.store([parent])
        made = [self.request(fields | {"family": None, "key": None}) for fields in children]
        for child, group in zip(made, ["g", "g", "h", None], strict=False):
            child.parent, child.group = parent.id, group
        self.store(made)
        for job in self.exchange([], 0, None, 1):
            self.settle_both([Settlement(job.id, job.token, wait)])
        ids = [child.id for child in made[:over]]
        assert self.run(self.engine.cancel(ids, "a")) == self.model.cancel(ids, "a")

    @precondition(lambda self: self.model.next_expiry() is not None)
    @rule(limit=st.sampled_from([1, 2, 100]))
    def expire(self, limit: int) -> None:
        """The earliest of those that are late are cancelled, all of them if it is as many."""
        late = self.model.late()
        answer = self.run(self.engine.expire(limit))
        ended = set(answer.ids)
        assert len(ended) == len(answer.ids) <= limit
        check_oldest(late, ended, lambda job: (job.expires_at or 0.0, job.stored_in))
        # Fewer only if there is more to look at.
        assert len(ended) == min(limit, len(late)) or (limit < 100 and answer.next_in == 0.0)
        self.model.expire(answer.ids)
        expected = self.model.next_expiry()
        if expected is not None:
            assert answer.next_in is not None
            assert answer.next_in < expected + MOMENT

    @precondition(lambda self: self.model.jobs)
    @rule(number=picks, waiting=st.booleans(), event=st.sampled_from(EVENTS))
    def signal(self, number: int, waiting: bool, event: str) -> None:
        """An event for some job, or for one that waits for something, or for nobody."""
        body = b"%d" % number
        for job_id in (self.some_job(number, waiting), self.new_id()):
            answer = self.run(self.engine.signal(job_id, event, body))
            assert answer == self.model.signal(job_id, event, body)
        self.look_at_entries(self.model.jobs[self.some_job(number, waiting)])

    @precondition(lambda self: self.model.suspended())
    @rule(numbers=st.lists(picks, max_size=2), everybody=st.booleans(), signalled=st.booleans())
    def wake(self, numbers: list[int], everybody: bool, signalled: bool) -> None:
        """Look after those that wait, and after others, that are left alone."""
        if signalled:
            self.signal(0, True, "e")
        ids = {self.some_job(number, waiting=False) for number in numbers}
        ids.update(self.model.suspended() if everybody else self.model.suspended()[:1])
        # Which one comes first into an empty lane is not promised, so one of each lane is woken.
        over = [each for each in sorted(ids) if self.model.wait_is_over(self.model.jobs[each])]
        first = {self.model.jobs[each].place: each for each in over}
        asked = [
            each
            for each in sorted(ids)
            if each not in over or first[self.model.jobs[each].place] == each
        ]
        woken = self.run(self.engine.wake([*asked, self.new_id()]))
        assert sorted(woken) == sorted(self.model.wake(asked))

    @precondition(lambda self: self.model.jobs)
    @rule(number=picks, stale=st.booleans())
    def rerun_unchanged(self, number: int, stale: bool) -> None:
        job_id = sorted(self.model.jobs)[number % len(self.model.jobs)]
        tokens = {job_id: self.model.jobs[job_id].token - stale, self.new_id(): 1}
        moved = self.run(self.engine.rerun_unchanged(tokens))
        assert moved == self.model.rerun_unchanged(tokens)

    @precondition(lambda self: self.model.finished())
    @rule(number=picks, kind=st.sampled_from(["stage", "artifact", EVENT]), stale=st.booleans())
    def rerun_without(self, number: int, kind: str, stale: bool) -> None:
        job_id = self.some_job(number, waiting=False)
        names = [(kind, name) for name in ("s0", "s1", "e")]
        token = self.model.jobs[job_id].token - stale
        accepted = self.run(self.engine.rerun_without(job_id, names, token=token))
        assert accepted == self.model.rerun_without(job_id, names, token)

    @precondition(lambda self: self.model.jobs)
    @rule(number=picks, group=st.sampled_from([None, *GROUPS]))
    def look_at_families(self, number: int, group: str | None) -> None:
        """Children are listed by their parent, and those that wait in the order of ids."""
        parents = sorted({job.new.parent or "" for job in self.model.jobs.values()} - {""})
        parent = parents[number % len(parents)] if parents else self.some_job(number, False)
        wanted = JobFilter(parent=parent, group=group)
        listed: list[str] = []
        cursor = None
        while not listed or cursor is not None:
            page = self.run(self.engine.list_jobs(wanted, cursor=cursor, limit=2))
            listed += [job.id for job in page.jobs]
            cursor = page.cursor
            if not page.jobs:
                break
        children = [job.new.id for job in self.model.children(parent, group)]
        assert listed == sorted(children, reverse=True)
        suspended = self.model.suspended()
        assert self.run(self.engine.suspended()) == suspended
        after = suspended[0] if suspended else ""
        found = self.run(self.engine.suspended(after=after, limit=1))
        assert found == [each for each in suspended if each > after][:1]

    def some_job(self, number: int, waiting: bool) -> str:
        """A job, or if there is one and it is asked for, one that waits for something."""
        suspended = self.model.suspended()
        if waiting and suspended:
            return suspended[number % len(suspended)]
        jobs = list(self.model.jobs)
        return jobs[number % len(jobs)]
