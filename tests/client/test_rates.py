"""Rates and holds by a client of a server, and by commands that ask one."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
import headrace.client.sync
from headrace.model.limits.rate import Rate
from tests.client.conftest import Served
from tests.client.test_remote_cli import RemoteCli

LANE = "host:example.com/ü x?"


async def test_a_client_has_the_verbs_of_an_app(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        view = await client.set_rate("elsewhere", "10/m", lane=LANE, burst=3)
        assert (view.rate, view.by_operator) == (Rate(10, 60, 3), True)
        assert await client.rates(queue="elsewhere", lane=LANE) == [view]
        # A queue is another key than its lanes.
        queue = await client.set_rate("elsewhere", Rate(1, 0.5, 2))
        assert (queue.lane, queue.rate) == ("", Rate(2, 1, 2))
        assert await client.rates(queue="elsewhere", lane="") == [queue]
        held = await client.hold("elsewhere", lane=LANE, duration=60, reason="they asked")
        assert held.held_reason == "they asked"
        assert held.held_by
        assert (await client.release_hold("elsewhere", lane=LANE)).held_until is None
        assert (await client.remove_rate("elsewhere", lane=LANE)).rate is None
        assert (await client.remove_rate("elsewhere")).rate is None
        assert await client.rates() == []


async def test_what_cannot_be_is_refused_as_by_an_app(one_server: Served) -> None:
    async with headrace.Client(one_server.url) as client:
        with pytest.raises(headrace.InvalidInput, match="write"):
            await client.set_rate("elsewhere", "ten")
        with pytest.raises(headrace.InvalidInput, match="a hold has an end"):
            await client.hold("elsewhere")
        with pytest.raises(headrace.InvalidInput, match="control character"):
            await client.remove_rate("elsewhere", lane="a\nb")


def test_a_client_without_an_event_loop(one_server: Served) -> None:
    with headrace.client.sync.Client(one_server.url) as client:
        assert client.set_rate("elsewhere", "1/s", lane="x").rate == Rate(1, 1, 1)
        assert [each.lane for each in client.rates()] == ["x"]
        assert client.remove_rate("elsewhere", lane="x").rate is None


def test_commands_ask_a_server(one_server: Served, tmp_path: Path) -> None:
    cli = RemoteCli(tmp_path, one_server)
    place = ("elsewhere", "--lane", "user:1")
    cli("enqueue", "mine", "user=1", "--queue", "elsewhere")
    told = cli("rates", "set", *place, "--rate", "10/m", "--burst", "3").out
    assert told == "Lane user:1 of queue elsewhere starts 10 a minute, up to 3 at once.\n"
    [rate] = cli("rates", "list", "--json").json["rates"]
    assert (rate["lane"], rate["waiting"], rate["rate"]["burst"]) == ("user:1", 1, 3)
    cli("rates", "hold", *place, "--for", "10m", "--reason", "they asked")
    [told] = [each for each in cli("rates", "list").out.splitlines() if "they asked" in each]
    assert told.startswith("Lane user:1 of queue elsewhere is held until ")
    shown = cli("top", "--json", "--interval", "100ms").json
    assert [each["lane"] for each in shown["rates"]] == ["user:1"]
    assert "is not held" in cli("rates", "release", *place).out
    assert cli("rates", "remove", *place, "--json").json["rate"] is None
