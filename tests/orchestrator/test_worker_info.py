"""The identity that a worker registers with."""

from __future__ import annotations

from headrace.orchestrator.worker_info import make_worker_info, with_unique_suffix


def test_a_worker_has_a_name_of_its_own() -> None:
    one, two = (make_worker_info(name=None, queues=(), slots=3, tasks=()) for _ in range(2))
    assert one.name != two.name
    assert one.id != two.id
    assert str(one.pid) in one.name
    assert make_worker_info(name="mine", queues=("q",), slots=1, tasks=()).name == "mine"
    assert len(with_unique_suffix("x" * 128)) == 128
