"""The judge of killed policies: each of its rules can be broken."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model.insert_policy import EXPIRED, replaced_by
from tests.crash.policies.judge import Call, Judge, Made
from tests.crash.policies.lives import Told


class Log:
    """A run that keeps every promise, of which something may be changed."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        self.jobs: dict[str, Made] = {}
        self.starts: list[Told] = []
        self.add("r1", "replace", 10.0, status="cancelled", error=replaced_by("r2"))
        self.add("r2", "replace", 11.0, started=11.5)
        self.add("r3", "replace", 12.0, started=12.5)
        self.add("l1", "lane_replace", 10.0, started=10.1)
        self.add("l2", "lane_replace", 11.0, status="cancelled", error=replaced_by("l3"))
        self.add("l3", "lane_replace", 12.0, started=13.0)
        self.add("c1", "lane_cancel_running", 10.0, started=10.1, finished=10.2)
        stopped: dict[str, Any] = {"status": "cancelled", "error": replaced_by("c3")}
        self.add("c2", "lane_cancel_running", 11.0, started=11.1, asked_to_stop=True, **stopped)
        self.add("c3", "lane_cancel_running", 12.0, started=12.5)
        self.add("f1", "lane_refuse", 10.0, started=10.1, finished=10.5)
        self.add("f2", "lane_refuse", 11.0, started=11.1)
        self.calls["f0"] = Call(place="lane_refuse k", asked=10.3, got=10.4, refused=True)
        self.add("w1", "window", 10.0, started=10.1)
        self.calls["w0"] = Call(place="window k", asked=10.2, got=10.3, job="w1")
        self.add("w2", "window", 10.6, started=10.7)
        self.add("d1", "debounce", 10.0, started=11.0, run_at=10.3)
        self.calls["d0"] = Call(place="debounce k", asked=9.9, got=10.01, job="d1")
        self.add("d2", "debounce", 11.5, started=12.0, run_at=11.7)
        self.add("e1", "expires", 10.0, status="cancelled", error=EXPIRED, finished=10.5)
        self.add("e2", "expires", 10.0, started=10.3)

    def add(self, name: str, policy: str, at: float, **fields: Any) -> None:
        """A call, the job that it made, and its start if it had one."""
        place = f"{policy} k"
        self.calls[name] = Call(place=place, asked=at - 0.01, got=at + 0.01, job=name)
        known: dict[str, Any] = {"status": "completed", "run_at": at, "finished": at + 2.0}
        if fields.get("started") is not None:
            known["token"] = 1
            self.start(name, fields["started"])
        self.jobs[name] = Made(id=name, place=place, call=name, created=at, **known | fields)

    def start(self, name: str, at: float, call: str = "") -> None:
        self.starts.append(Told(event="start", job=name, call=call or name, at=at))

    def change(self, name: str, **fields: Any) -> None:
        for field, value in fields.items():
            setattr(self.jobs[name], field, value)

    @property
    def findings(self) -> list[str]:
        return Judge(self.calls, self.jobs.values(), self.starts).findings()


@pytest.fixture
def log() -> Log:
    log = Log()
    assert log.findings == []
    return log


def test_an_acknowledged_job_is_missing(log: Log) -> None:
    del log.jobs["e2"]
    assert log.findings == ["call e2 of expires k was told of e2, which is not there"]


def test_a_call_has_made_two(log: Log) -> None:
    log.add("e3", "expires", 10.0, started=10.1)
    del log.calls["e3"]
    log.change("e3", call="e2")
    assert "call e2 of expires k made ['e2', 'e3']" in log.findings


def test_nobody_asked_for_a_job(log: Log) -> None:
    log.add("e3", "expires", 10.0, started=10.1)
    del log.calls["e3"]
    assert log.findings == ["e3 of expires k: nobody asked for it (e3)"]


def test_a_refused_call_has_made_one(log: Log) -> None:
    log.calls["f2"] = Call(place="lane_refuse k", asked=10.9, got=11.1, refused=True)
    assert log.findings == ["call f2 was refused, and made ['f2']"]


def test_a_call_was_told_of_the_job_of_another(log: Log) -> None:
    log.calls["e1"].job = "e2"
    assert log.findings == ["call e1 was told of e2, and made ['e1']"]


@pytest.mark.parametrize(
    ("name", "fields", "finding"),
    [
        ("e2", {"status": "failed", "error": "x"}, "e2 of expires k is failed: x"),
        ("w1", {"status": "cancelled", "error": "x"}, "w1 of window k was cancelled: x"),
        (
            "r1",
            {"token": 1},
            "r1 of replace k was cancelled after it had begun: replaced by job r2",
        ),
        ("r1", {"error": replaced_by("r3")}, "r1 of replace k: replaced by job r3, expected r2"),
        ("r2", {"started": 12.5}, "r2 of replace k did not give way to r3"),
        (
            "c1",
            {"finished": 11.5},
            "c1 of lane_cancel_running k did not give way to c2",
        ),
        (
            "c3",
            {"status": "cancelled", "error": "x"},
            "c3 is the last of lane_cancel_running k, and was cancelled: x",
        ),
        ("w2", {"created": 10.4}, "w2 of window k is in the window of w1"),
        ("d1", {"run_at": 10.7}, "d1 of debounce k was put off for 0.700 s"),
        ("d1", {"started": 12.0}, "d2 of debounce k was made before d1 had begun"),
        ("d2", {"started": 11.0}, "d2 of debounce k was changed after it had begun"),
        ("e2", {"started": 10.5}, "e2 began 0.100 s after its time"),
        ("e1", {"error": "x"}, "e1 was cancelled: x"),
        ("e1", {"finished": 10.3}, "e1 was cancelled -0.100 s after its time"),
        ("e1", {"finished": 30.4}, "e1 was cancelled 20.000 s after its time"),
        ("f1", {"finished": 11.5}, "f2 of lane_refuse k was not refused for f1"),
    ],
)
def test_a_job_is_not_as_promised(
    log: Log, name: str, fields: dict[str, Any], finding: str
) -> None:
    log.change(name, **fields)
    assert log.findings == [finding]


def test_a_completed_job_never_began(log: Log) -> None:
    log.starts = [line for line in log.starts if line.job != "e2"]
    assert log.findings == ["e2 of expires k was completed, and never began"]


def test_a_call_got_a_job_after_its_window(log: Log) -> None:
    log.calls["w0"].asked = 10.55
    assert log.findings == ["call w0 of window k got w1 after its window"]


def test_a_debounced_job_began_with_other_arguments(log: Log) -> None:
    log.start("d1", 10.9, "d0")
    log.starts = [line for line in log.starts if line.call != "d1"]
    assert log.findings == ["d1 of debounce k has d1, and began with {'d0'}"]


def test_the_arguments_of_a_debounced_job_are_not_the_last(log: Log) -> None:
    log.calls["d0"].asked = 10.1
    assert log.findings == ["d1 of debounce k has d1, which was not the last"]


def test_the_arguments_of_a_debounced_job_are_those_of_another(log: Log) -> None:
    log.calls["d1"].job = "d2"
    log.calls["d1"].asked = 11.4
    assert "d1 of debounce k has d1, which was told of d2" in log.findings


@pytest.mark.parametrize("policy", ["replace", "debounce", "lane_refuse", "lane_cancel_running"])
def test_one_too_many_stands(policy: str) -> None:
    log = Log()
    log.calls.clear()
    log.jobs.clear()
    for number in (1, 2):
        log.add(f"a{number}", policy, 10.0 + number, finished=None, status="pending")
    [finding] = Judge(log.calls, log.jobs.values()).standing()
    assert finding.startswith(f"{policy} k: ['a1 ()', 'a2 ()'] stand, expected")


def test_of_a_lane_that_replaces_the_first_and_the_last_stand() -> None:
    log = Log()
    log.calls.clear()
    log.jobs.clear()
    for number in (1, 2, 3):
        log.add(f"a{number}", "lane_replace", 10.0 + number, finished=None, status="pending")
    assert len(Judge(log.calls, log.jobs.values()).standing()) == 1
    log.change("a2", status="cancelled", finished=13.0)
    assert Judge(log.calls, log.jobs.values()).standing() == []
    log.change("a3", token=1)
    assert Judge(log.calls, log.jobs.values()).standing() == ["a3 of lane_replace k has started"]
