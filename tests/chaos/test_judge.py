"""The judge finds each kind of violation in a log made by hand, and none in a good one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from chaos.history import History
from chaos.journal import Line
from chaos.judge import Final, Violation, judge
from chaos.losses import set_apart
from chaos.pages import PROMISES


class Log:
    """A log that is told line by line. A second passes with each, unless one says when it was."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.finals: dict[str, Final] = {}
        self.audit: list[str] = []
        self.now = 0.0

    def add(self, event: Any, at: float | None = None, **fields: Any) -> None:
        self.now = self.now + 1.0 if at is None else at
        self.lines.append(Line(event=event, at=self.now, **fields))

    def acknowledge(self, job: str, task: str = "plain", lane: str = "", number: int = 0) -> None:
        self.add("acknowledged", job=job, task=task, lane=lane, number=number)

    def begin(self, job: str, token: int = 1, **more: Any) -> None:
        self.add("begin", job=job, token=token, nonce=f"{job}{token}", **{"pid": 7, **more})

    def end(self, job: str, token: int = 1, **more: Any) -> None:
        self.add("end", job=job, token=token, nonce=f"{job}{token}", **more)

    def settle(self, job: str, token: int = 1, name: str = "Completed") -> None:
        self.add("settled", job=job, token=token, name=name)

    def store(self, job: str, token: int = 1, **fields: Any) -> None:
        result = {"number": 0, "token": token, "nonce": f"{job}{token}"}
        made = {"task": "plain", "status": "completed", "result": result, **fields}
        self.finals[job] = Final(job, token=token, **made)

    def run(self, job: str, token: int = 1, lane: str = "") -> None:
        """An attempt that begins, ends and counts."""
        self.begin(job, token, lane=lane)
        self.end(job, token, lane=lane)
        self.settle(job, token)
        self.store(job, token)

    def violations(self) -> list[Violation]:
        return judge(self.lines, list(self.finals.values()), audit=self.audit).violations

    def rules(self) -> list[str]:
        return [each.rule for each in self.violations()]


@pytest.fixture
def log() -> Log:
    """A log in which all went well: a job at once, one after a crash, and two of a lane."""
    log = Log()
    for job in ("a", "b"):
        log.acknowledge(job)
    for job in ("c", "d"):
        log.acknowledge(job, task="laned", lane="lane")
    log.run("a")
    log.begin("b", 1, pid=8)
    log.add("died", number=8)
    log.run("b", 2)
    log.run("c", lane="lane")
    log.run("d", lane="lane")
    return log


def test_a_good_log_has_no_violation(log: Log) -> None:
    judgement = judge(log.lines, list(log.finals.values()), audit=[])
    assert judgement.violations == []
    assert judgement.counts["acknowledged"] == judgement.counts["completed"] == 4
    assert judgement.counts["runs again"] == 1
    assert judgement.take_overs == [1.0]


def lose(log: Log) -> None:
    del log.finals["a"]


def leave(log: Log) -> None:
    log.store("a", status="pending", result=None)


def fail(log: Log) -> None:
    log.store("a", status="failed", result=None)


def run_twice(log: Log) -> None:
    log.begin("a")


def overwrite(log: Log) -> None:
    # The first attempt at b, which had lost its lease, has the last word.
    log.store("b", 2, result={"number": 0, "token": 1, "nonce": "b1"})


def end_early(log: Log) -> None:
    # A later attempt was begun than the one that counts.
    log.begin("a", 2)


def make_up(log: Log) -> None:
    log.store("a", result={"number": 0, "token": 1, "nonce": "nobody's"})


def swap(log: Log) -> None:
    log.store("a", result={"number": 5, "token": 1, "nonce": "a1"})


def record_twice(log: Log) -> None:
    log.settle("b", 1, "Failed")


def repeat_stage(log: Log) -> None:
    log.add("stage", job="b", token=1, name="one")
    log.add("kept", job="b", token=1, name="one")
    log.add("stage", job="b", token=2, name="one")


def double_key(log: Log) -> None:
    log.store("a", key="k")
    log.store("b", 2, key="k")


def overlap(log: Log) -> None:
    log.acknowledge("e", task="laned", lane="lane")
    log.acknowledge("f", task="laned", lane="lane")
    log.begin("e", lane="lane")
    log.run("f", lane="lane")
    log.end("e", lane="lane")
    log.settle("e")
    log.store("e")


def pass_by(log: Log) -> None:
    log.acknowledge("e", task="laned", lane="lane")
    log.acknowledge("f", task="laned", lane="lane")
    log.run("f", lane="lane")
    log.run("e", lane="lane")


def contradict(log: Log) -> None:
    log.audit.append("a lane has a holder that does not exist")


BROKEN: list[tuple[Callable[[Log], None], str]] = [
    (lose, "lost"),
    (leave, "not ended"),
    (fail, "not completed"),
    (run_twice, "token run twice"),
    (overwrite, "stale outcome"),
    (end_early, "stale outcome"),
    (make_up, "stale outcome"),
    (swap, "foreign result"),
    (record_twice, "recorded twice"),
    (repeat_stage, "stage run again"),
    (double_key, "key doubled"),
    (overlap, "lane overlap"),
    (pass_by, "lane order"),
    (contradict, "audit"),
]


@pytest.mark.parametrize(("harm", "rule"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_each_broken_promise_is_found(log: Log, harm: Callable[[Log], None], rule: str) -> None:
    harm(log)
    assert log.rules() == [rule]


def test_every_rule_has_words_for_the_page() -> None:
    assert {rule for _, rule in BROKEN} < set(PROMISES)


def test_a_bad_handler_need_not_complete_but_has_to_end(log: Log) -> None:
    log.acknowledge("e", task="poison")
    log.store("e", task="poison", status="failed", result=None)
    assert log.rules() == []
    log.store("e", task="poison", status="running", result=None)
    assert log.rules() == ["not ended"]


def test_a_stage_that_was_not_kept_may_run_again(log: Log) -> None:
    log.add("stage", job="b", token=1, name="one")
    log.add("stage", job="b", token=2, name="one")
    log.add("kept", job="b", token=2, name="one")
    assert log.rules() == []


def test_an_attempt_that_has_lost_its_lease_unawares_breaks_no_rule_of_stages(log: Log) -> None:
    log.add("kept", job="b", token=2, name="one")
    log.add("stage", job="b", token=1, name="one")
    assert log.rules() == []


def frozen(log: Log) -> None:
    """A worker stands still in e; others take e over, then f; then it goes on."""
    log.acknowledge("e", task="laned", lane="lane")
    log.acknowledge("f", task="laned", lane="lane")
    log.begin("e", 1, lane="lane")
    log.run("e", 2, lane="lane")
    log.begin("f", 1, lane="lane")
    log.end("e", 1, lane="lane")
    log.end("f", 1, lane="lane")
    log.settle("f")
    log.store("f")


def test_an_attempt_whose_job_was_taken_over_holds_its_lane_no_more(log: Log) -> None:
    frozen(log)
    assert log.rules() == []


def test_a_late_begin_of_an_attempt_that_was_taken_over_is_no_overlap(log: Log) -> None:
    frozen(log)
    log.begin("c", 0, lane="lane")
    assert "lane overlap" not in log.rules()


def test_an_attempt_that_never_ended_holds_its_lane_until_its_process_died() -> None:
    lines = [
        Line(event="begin", job="a", token=1, nonce="x", lane="l", pid=8, at=1.0),
        Line(event="died", number=8, at=5.0),
    ]
    assert History.of(lines).valid_until(lines[0]) == 5.0
    assert History.of(lines[:1]).valid_until(lines[0]) == float("inf")


def test_a_recovery_that_is_late_or_not_seen_is_told(log: Log) -> None:
    judgement = judge(log.lines, list(log.finals.values()), audit=[])
    judgement.judge_recovery([("freeze", 4.9), ("freeze", 5.1), ("kill", None)], 5.0)
    assert [each.detail for each in judgement.violations] == [
        "freeze: first job after 5.1 s, limit 5 s",
        "kill: first job not seen, limit 5 s",
    ]


def test_what_may_be_lost_is_told_by_what_happened_next_and_is_no_violation(log: Log) -> None:
    lose(log)
    run_twice(log)
    leave_b = Final("b", "plain", "pending", 2)
    log.finals["b"] = leave_b
    judgement = judge(log.lines, list(log.finals.values()), audit=[])
    at = {line.job: line.at for line in log.lines if line.event == "acknowledged"}
    found = set_apart(judgement, at, [(0.5, "cut"), (at["a"] + 0.5, "kill"), (90.0, "cut")])
    # What was lost, and what follows from it, is set apart; a job that does not end is not.
    assert [each.rule for each in judgement.violations] == ["not ended"]
    assert found["kill"] == {"times": 1, "lost": 1, "most": 1}
    assert found["cut"] == {"times": 2, "lost": 0, "most": 0}
    assert found["all"]["lost"] == 1
