"""What a broker has sent ahead is not kept from others while the engine is away."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import headrace
from headrace.dispatchers.events.message_parser import MessageParser
from headrace.dispatchers.events.receiver import BatchBuffer, Receiver
from tests.dispatchers.events.own import OwnTopic
from tests.dispatchers.events.scene import Scene, numbered
from tests.support.processes import until


@pytest.mark.parametrize("ahead", [True, False])
async def test_a_reader_leaves_a_broker_that_sends_ahead_while_its_gate_is_closed(
    tmp_path: Path, ahead: bool
) -> None:
    topic = OwnTopic(str(tmp_path / "topic"))
    await topic.open()
    adapter = topic.adapter()
    adapter.sends_ahead = ahead
    gate, inbox = asyncio.Event(), BatchBuffer(batch_size=100)
    gate.set()
    app: headrace.App = Scene(f"sqlite:///{tmp_path}/jobs.db", tmp_path).app
    reader = Receiver(
        adapter=adapter, parser=MessageParser(app), buffer=inbox, engine_available=gate
    )
    reader.start()
    await topic.send(numbered(3))
    await until(lambda: reader.received == 3, "the first messages")
    gate.clear()
    if ahead:
        await until(lambda: not reader.connected, "that the reader has left")
    gate.set()
    await topic.send(numbered(2, start=3))
    await until(lambda: reader.received >= 5, "the next messages")
    assert reader.connected
    await reader.stop()
    await reader.leave()
