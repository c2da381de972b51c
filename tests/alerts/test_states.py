"""For how long, how often, silenced, and what holds when evaluators race or die."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from headrace.alerts.evaluate import KEPT, MOST_SUBJECTS, Evaluator
from headrace.alerts.state import AlertCondition, step
from headrace.alerts.store import STATE
from headrace.errors import EngineUnavailable, InvalidInput
from headrace.model.alerts.rule import AlertRule
from headrace.model.status import Status
from headrace.monitor.findings.dead_letters import KIND as DEAD_LETTER
from tests.alerts.conftest import Alerts
from tests.alerts.provoke import empty, heartbeat, three_jobs
from tests.publishing.receiver import Answer
from tests.support.verbs import enqueue

LENGTH: dict[str, Any] = {"kind": "queue_length", "above": 2}


async def test_it_has_to_hold_for_a_while(alerts: Alerts) -> None:
    await alerts.rule(**LENGTH, for_="5m")
    await three_jobs(alerts)
    assert await alerts.told() == []
    assert [each.phase for each in await alerts.app.alerts()] == ["waiting"]
    # It ends before, and begins anew: the time counts from there.
    alerts.clock.advance(200)
    await empty(alerts)
    assert await alerts.told() == []
    assert list(await alerts.app.alerts()) == []
    await three_jobs(alerts)
    assert await alerts.told() == []
    alerts.clock.advance(200)
    assert await alerts.told() == []
    alerts.clock.advance(101)
    assert await alerts.told() == ["firing"]
    await empty(alerts)
    assert await alerts.told() == ["firing", "resolved"]


async def test_it_is_repeated_and_a_second_episode_is_another(alerts: Alerts) -> None:
    await alerts.rule(**LENGTH, repeat="1h")
    await three_jobs(alerts)
    assert await alerts.told() == ["firing"]
    alerts.clock.advance(3_500)
    assert await alerts.told() == ["firing"]
    for number in (2, 3):
        alerts.clock.advance(3_601)
        assert await alerts.told() == ["firing"] + ["repeated"] * (number - 1)
        assert alerts.events[-1]["data"]["number"] == number
    await empty(alerts)
    assert (await alerts.told())[-1] == "resolved"
    await three_jobs(alerts)
    assert (await alerts.told())[-1] == "firing"
    episodes = [each["data"]["episode"] for each in alerts.events]
    assert len(set(episodes[:4])) == 1
    assert episodes[4] != episodes[0]
    assert len({each["id"] for each in alerts.events}) == len(alerts.events) == 5


async def test_silence(alerts: Alerts) -> None:
    """What fires in a silence is told at its end; what was told before is told to be over."""
    await alerts.rule(**LENGTH)
    await alerts.app.silence_alert("rule", duration=3_600, reason="we know", by="ada")
    await three_jobs(alerts)
    assert await alerts.told() == []
    [shown] = await alerts.app.alerts()
    assert (shown.phase, shown.silenced_until is not None) == ("firing", True)
    assert (await alerts.app.alert_rule("rule")).silences[0].reason == "we know"
    alerts.clock.advance(3_601)
    assert await alerts.told() == ["firing"]
    await alerts.app.silence_alert("rule", duration=3_600, subject="mail")
    await empty(alerts)
    assert await alerts.told() == ["firing", "resolved"]
    # It comes and goes within the silence: nobody hears of it.
    await three_jobs(alerts)
    assert await alerts.told() == ["firing", "resolved"]
    await empty(alerts)
    assert await alerts.told() == ["firing", "resolved"]
    # Another subject is not silenced, and an ended silence is none.
    for _ in range(3):
        await enqueue(alerts.engine, queue="other")
    assert len(await alerts.told()) == 3
    await three_jobs(alerts)
    assert len(await alerts.told()) == 3
    assert await alerts.app.unsilence_alert("rule", subject="mail")
    assert not await alerts.app.unsilence_alert("rule", subject="mail")
    assert len(await alerts.told()) == 4


async def test_a_receiver_that_is_down_gets_it_when_it_is_back(alerts: Alerts) -> None:
    await alerts.rule(**LENGTH)
    await alerts.receiver.stop()
    await three_jobs(alerts)
    assert await alerts.told() == []
    await empty(alerts)
    # The resolution waits behind the alert: it must not arrive first.
    assert await alerts.told() == []
    alerts.clock.advance(30)
    assert await alerts.told() == []
    await alerts.receiver.start()
    alerts.receiver.answers = [Answer(500)]
    for _ in range(8):
        alerts.clock.advance(330)
        if len(await alerts.told()) == 3:
            break
    # The first is repeated, since it was answered with an error; under the same id.
    assert [each["data"]["status"] for each in alerts.events] == ["firing", "firing", "resolved"]
    assert alerts.events[0]["id"] == alerts.events[1]["id"]
    jobs = await alerts.jobs()
    assert [each.status for each in jobs] == [Status.COMPLETED] * 2


async def test_many_rounds_at_once_make_one_delivery_for_each(alerts: Alerts) -> None:
    """Thirty at once, again and again: whoever loses the race has changed nothing."""
    await alerts.rule(**LENGTH, repeat="1m")
    await three_jobs(alerts)
    for expected in (1, 2, 3):
        await asyncio.gather(*(each.round() for each in alerts.evaluators * 10))
        assert len(await alerts.jobs()) == expected
        alerts.clock.advance(61)
    await empty(alerts)
    await asyncio.gather(*(each.round() for each in alerts.evaluators * 10))
    assert len(await alerts.jobs()) == 4


@pytest.mark.parametrize("before", [True, False])
async def test_an_evaluator_that_dies_while_it_writes(alerts: Alerts, before: bool) -> None:
    """Cut off before or after the store has it: the others go on, and one message is told."""
    await alerts.rule(**LENGTH)
    await three_jobs(alerts)
    dying, *others = alerts.evaluators
    engine = alerts.apps[0].engine
    real = engine.insert

    async def cut_off(*given: object, **options: object) -> object:
        if not before:
            await real(*given, **options)  # type: ignore[arg-type]
        raise EngineUnavailable("cut off")

    engine.insert = cut_off  # type: ignore[assignment,method-assign]
    with pytest.raises(EngineUnavailable):
        await dying.round()
    engine.insert = real  # type: ignore[method-assign]
    assert len(await alerts.jobs()) == (0 if before else 1)
    alerts.evaluators = others
    assert await alerts.told() == ["firing"]
    await empty(alerts)
    assert await alerts.told() == ["firing", "resolved"]
    assert len(await alerts.jobs()) == 2


async def test_a_broken_rule_says_why_and_the_rest_goes_on(
    alerts: Alerts, caplog: pytest.LogCaptureFixture
) -> None:
    await alerts.rule("a-nobody", **LENGTH, to=["nobody", "ops"])
    await alerts.rule("b-good", **LENGTH)
    await alerts.rule("c-free", kind="engine_space", free_below=1)
    await alerts.engine.record_put("alert-rule", "d-newer", b'{"rule": {"kind": "moon_phase"}}')
    await three_jobs(alerts)
    assert await alerts.told() == ["firing", "firing"]
    shown = {each.name: each.problem for each in await alerts.app.alert_rules()}
    assert "there is no receiver nobody; add it" in str(shown["a-nobody"])
    assert shown["b-good"] is None
    assert 'alert rule "d-newer" cannot be read' in str(shown["d-newer"])
    told = alerts.evaluators[0].problems
    # PostgreSQL does not tell how much disk is free, nor does a Redis without a limit.
    assert ("c-free" in told) == (alerts.engine.name != "sqlite")
    if "c-free" in told:
        assert "does not tell how much" in told["c-free"]
    # Said once, not at each round.
    assert caplog.text.count("there is no receiver nobody") == len(alerts.evaluators)
    await alerts.app.remove_alert_rule("d-newer")


async def test_rules_that_go_away_end_their_alerts(alerts: Alerts) -> None:
    await alerts.rule("gone", **LENGTH)
    await alerts.rule("off", **LENGTH)
    await alerts.rule("other", **LENGTH)
    await three_jobs(alerts)
    assert await alerts.told() == ["firing"] * 3
    await alerts.app.remove_alert_rule("gone")
    await alerts.rule("off", **LENGTH, enabled=False)
    await alerts.rule("other", kind="queue_age", above="10h")
    assert await alerts.told() == ["firing"] * 3 + ["resolved"] * 3
    assert "its rule was removed" in alerts.events[-1]["data"]["detail"]
    # What is over is forgotten after a day.
    alerts.clock.advance(KEPT.total_seconds() + 60)
    await alerts.rule("other", kind="queue_age", above="100h")
    await alerts.round()
    assert await alerts.engine.record_list(STATE) == []


async def test_without_rules_nothing_is_read(alerts: Alerts) -> None:
    asked: list[str] = []
    engine = alerts.apps[0].engine
    for name in ("queues", "workers", "lanes", "report", "now", "list_jobs"):
        setattr(engine, name, _counted(asked, name, getattr(engine, name)))
    real = engine.record_list

    async def record_list(kind: str, **options: object) -> object:
        asked.append(kind)
        return await real(kind, **options)  # type: ignore[arg-type]

    engine.record_list = record_list  # type: ignore[assignment,method-assign]
    evaluator = Evaluator(alerts.apps[0], alerts.apps[0]._publishing)
    assert await evaluator.round() == 0
    assert asked == ["alert-rule", "alert"]
    await alerts.rule(**LENGTH)
    asked.clear()
    assert await evaluator.round() == 1
    # What this kind does not need is not read either.
    assert not {"report", "list_jobs", "dead-letter", "schedule"} & set(asked)


def _counted(asked: list[str], name: str, real: object) -> object:
    async def call(*given: object, **options: object) -> object:
        asked.append(name)
        return await real(*given, **options)  # type: ignore[operator]

    return call


def test_facts_that_are_not_newer_change_nothing() -> None:
    """A server with older facts must not undo what one with newer facts has seen."""
    rule = AlertRule(name="r", kind="queue_length", to=("ops",), above=1)
    known = frozenset({"ops"})
    seen = AlertCondition(subject="mail", detail="long")

    def moved(before: Any, condition: AlertCondition | None, facts_at: float, now: float) -> Any:
        return step(
            rule,
            before,
            condition,
            read_from=facts_at,
            read_by=facts_at,
            now=now,
            silenced=False,
            known=known,
        )

    firing = moved(None, seen, 100.0, 100.0)
    assert firing.status == "firing"
    assert moved(firing.state, None, 100.0, 105.0) is None
    assert moved(firing.state, None, 40.0, 105.0) is None
    over = moved(firing.state, None, 110.0, 110.0)
    assert over.status == "resolved"
    assert moved(over.state, seen, 105.0, 115.0) is None
    assert moved(over.state, seen, 120.0, 120.0).status == "firing"


async def test_what_was_read_meanwhile_does_not_begin_an_alert_anew(alerts: Alerts) -> None:
    """One evaluator is slow: it begins to read before another, and reads the dead letters after
    that one has kept them for its next rounds, and after they were removed.
    """
    await alerts.rule(kind="dead_letters")
    await alerts.engine.record_put(DEAD_LETTER, "letter", b"{}")
    assert await alerts.told() == ["firing"]
    alerts.clock.advance(60)
    [slow, fast, *_] = alerts.evaluators
    begun, go_on = asyncio.Event(), asyncio.Event()
    engine = alerts.apps[0].engine
    real = engine.record_list

    async def held_up(kind: str, **options: Any) -> Any:
        if kind == DEAD_LETTER:
            begun.set()
            await go_on.wait()
        return await real(kind, **options)

    engine.record_list = held_up  # type: ignore[method-assign]
    slow_round = asyncio.create_task(slow.round())
    await begun.wait()
    await fast.round()
    await alerts.engine.record_delete(DEAD_LETTER, "letter")
    go_on.set()
    await slow_round
    engine.record_list = real  # type: ignore[method-assign]
    assert [each.phase for each in await alerts.app.alerts()] == ["ok"]
    await fast.round()
    assert await alerts.told() == ["firing", "resolved"]


async def test_a_rule_for_everything_is_bounded(alerts: Alerts) -> None:
    for number in range(MOST_SUBJECTS + 5):
        await enqueue(alerts.engine, queue=f"q{number}")
    await alerts.rule(kind="queue_length", above=0)
    [first, *_] = alerts.evaluators
    await first.round()
    assert len(await alerts.engine.record_list(STATE)) == MOST_SUBJECTS
    assert f"more than {MOST_SUBJECTS} subjects" in first.problems["rule"]


async def test_a_silent_dispatcher_whose_work_another_does(alerts: Alerts) -> None:
    await alerts.rule(kind="dispatcher_silent")
    await heartbeat(alerts).tick()
    alerts.clock.advance(40)
    other = heartbeat(alerts)
    other.dispatcher = "other"
    await other.tick()
    assert await alerts.told() == []


async def test_a_silence_that_makes_no_sense_is_refused(alerts: Alerts) -> None:
    await alerts.rule(**LENGTH)
    past = alerts.clock.utcnow() - timedelta(seconds=1)
    tried: tuple[dict[str, Any], ...] = (
        {},
        {"duration": 0},
        {"until": past},
        {"duration": 1, "until": past},
    )
    for wrong in tried:
        with pytest.raises(InvalidInput):
            await alerts.app.silence_alert("rule", **wrong)
