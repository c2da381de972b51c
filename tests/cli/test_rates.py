"""`headrace rates`, on a store of each engine and as people mistype it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli, wait_for

PLACE = ("default", "--lane", "customer:1")


def test_the_way_of_a_rate(cli: Cli) -> None:
    assert cli("rates", "list", "--json").json == {"rates": []}
    ids = [cli.enqueue("invoice.send", "customer_id=1") for _ in range(2)]
    told = cli("rates", "set", *PLACE, "--rate", "1/h").out
    assert told == "Lane customer:1 of queue default starts 1 an hour.\n"
    cli.drain()
    assert [cli.status(each) for each in ids] == ["completed", "scheduled"]
    parked = [cli("jobs", "show", each, "--json").json["parked"] for each in ids]
    assert parked == [False, True]
    assert "until then, by the rate of its lane or by a hold" in cli("jobs", "show", ids[1]).out
    watched = cli("jobs", "watch", ids[1], "--timeout", "100ms", code=1).out
    assert "scheduled  may start " in watched
    why = cli("jobs", "why", ids[1]).out
    assert "It may start at " in why
    assert "1 an hour for customer:1, set by an operator." in why
    [rate] = cli("rates", "list", "--queue", "default", "--json").json["rates"]
    assert rate["rate"] == {"count": 1.0, "per": 3_600.0, "burst": 1}
    assert (rate["waiting"], rate["by_operator"], rate["held_until"]) == (1, True, None)
    table = cli("rates", "list").out
    assert table.split()[:4] == ["LANE", "QUEUE", "RATE", "BURST"]
    assert "customer:1  default  1/h" in table
    assert "operator" in table
    told = cli("rates", "remove", *PLACE).out
    assert told == "Lane customer:1 of queue default has no rate.\n"
    cli.drain()
    assert cli.status(ids[1]) == "completed"


def test_the_way_of_a_hold(cli: Cli) -> None:
    job_id = cli.enqueue("invoice.send", "customer_id=1")
    held = cli("rates", "hold", "default", "--for", "10m", "--reason", "they asked", "--json").json
    assert (held["lane"], held["held_reason"]) == ("", "they asked")
    assert held["held_by"]
    cli.drain()
    assert cli.status(job_id) == "pending"
    table = cli("rates", "list").out
    assert "(the queue)" in table
    assert f"by {held['held_by']}: they asked" in table
    why = cli("jobs", "why", job_id).out
    assert "Queue 'default' is held until " in why
    assert "End that with: headrace rates release default" in why
    assert cli("rates", "release", "default").out == "Queue default is not held.\n"
    cli.drain()
    wait_for(lambda: cli.status(job_id) == "completed")


def test_top_shows_rates_where_there_are_any(cli: Cli) -> None:
    once = ("top", "--once", "--interval", "100ms")
    assert "Rates" not in cli(*once).out
    cli("rates", "set", *PLACE, "--rate", "10/m")
    shown = cli(*once).out
    assert "Rates" in shown
    assert "10/m" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set", "default"), "Missing option '--rate'"),
        (("set", "default", "--rate", "ten"), "rate 'ten' cannot be read; write"),
        (("hold", "default"), "give either --for 10m or --until with a time"),
        (
            ("hold", "default", "--for", "5s", "--until", "2090-01-01T00:00:00Z"),
            "give either --for 10m or --until with a time",
        ),
        (("hold", "default", "--until", "2020-01-01T00:00:00Z"), "choose a time to come"),
        (("list", "--limit", "0"), "--limit must be between 1 and 1000"),
        (("relaese", "default"), "Did you mean 'release'?"),
    ],
)
def test_what_is_mistyped_is_refused_with_a_remedy(
    cli: Cli, arguments: tuple[str, ...], told: str
) -> None:
    assert told in cli("rates", *arguments, code=2).err
