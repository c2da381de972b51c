"""What a child may ask of the worker, without a process in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace.orchestrator.isolation.attempt_server import AttemptServer
from headrace.orchestrator.isolation.error_transport import rebuild
from headrace.orchestrator.isolation.protocol import (
    HEADER,
    ArtifactOptions,
    Reply,
    ask,
    decode_from_child,
    frame,
)
from tests.orchestrator.isolation import handlers
from tests.orchestrator.isolation.conftest import RecordingContext, a_claim

RUN = 7


class Caller:
    """Asks as a child would, and waits for each reply."""

    def __init__(self) -> None:
        self.context = RecordingContext(a_claim(handlers.about))
        self.replies: asyncio.Queue[Any] = asyncio.Queue()
        self.server = AttemptServer(self.context, RUN, self.replies.put_nowait)

    def send(self, run: int, number: int, method: str, arguments: tuple[Any, ...]) -> None:
        sent = frame(ask(run, number, method, arguments), 1_000_000)
        self.server.take(decode_from_child(sent[HEADER.size :]))

    async def ask(self, method: str, *arguments: Any, run: int = RUN) -> bytes:
        self.send(run, 1, method, arguments)
        reply = await self.replies.get()
        assert isinstance(reply, Reply)
        assert (reply.run, reply.number) == (run, 1)
        if reply.report is not None:
            raise rebuild(reply.report)
        return reply.value


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller = Caller()
    yield caller
    await caller.server.close()


async def test_a_method_of_the_table_is_called(caller: Caller) -> None:
    assert await caller.ask("spawn", "children", []) == b"[]"
    assert await caller.ask("list_artifacts") == b"[]"


@pytest.mark.parametrize(
    "method",
    [
        "close",
        "take",
        "entries",
        "_start",
        "__init__",
        "entry_store.sleep",
        "progress",
        "stage",
        "",
    ],
)
async def test_what_is_not_in_the_table_cannot_be_called(caller: Caller, method: str) -> None:
    with pytest.raises(Exception, match=rf"no method '{method}'; there are begin_stage, end_stage"):
        await caller.ask(method)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("sleep", ("name", "soon", None)),
        ("sleep", ("name",)),
        ("spawn", ("name", [{"task": "has no id"}])),
        ("gather", (["018f"], "more")),
        ("read_artifact", (5, 0, 1)),
        ("end_stage", (1, b"", {"message": "no ancestry"})),
    ],
)
async def test_arguments_of_other_types_are_refused(
    caller: Caller, method: str, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(Exception, match=r"Expected `|missing required field"):
        await caller.ask(method, *arguments)


async def test_another_run_is_refused(caller: Caller) -> None:
    with pytest.raises(Exception, match="the attempt that asks is over"):
        await caller.ask("spawn", "children", [], run=RUN - 1)


async def test_nothing_is_replied_where_no_reply_is_wanted(caller: Caller) -> None:
    caller.send(RUN, 0, "sleep", ("name", 1.0, None))
    assert await caller.ask("spawn", "children", []) == b"[]"
    assert caller.replies.empty()


@pytest.mark.parametrize("method", ["end_stage", "write_put", "end_put"])
async def test_the_end_of_what_never_began_is_refused(caller: Caller, method: str) -> None:
    arguments = {"end_stage": (5, b"1", None), "write_put": (5, b"1"), "end_put": (5, True)}
    with pytest.raises(Exception, match="5 was never begun, or has ended"):
        await caller.ask(method, *arguments[method])


async def test_a_stage_ends_once(caller: Caller) -> None:
    assert await caller.ask("begin_stage", 5, "count", None, None) == b""
    await caller.ask("end_stage", 5, b"3", None)
    with pytest.raises(Exception, match="5 was never begun, or has ended"):
        await caller.ask("end_stage", 5, b"4", None)
    assert caller.context.kept == {"count": 3}
    assert await caller.ask("begin_stage", 6, "count", None, None) == b"3"


async def test_closing_ends_stages_and_files_that_are_open(caller: Caller) -> None:
    await caller.ask("begin_stage", 5, "count", None, None)
    await caller.ask("begin_put", 6, ArtifactOptions("a.bin", "bronze", None, {}))
    assert await caller.ask("write_put", 6, b"half") == b"true"
    await caller.server.close()
    assert caller.server._tasks == set()
    assert caller.context.kept == {}
    assert caller.context.artifacts.files == {}
