"""A browser as people have it: tabs of which one is in front. Playwright's are all in front."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.browser import FLAGS


class Tab:
    """One tab, whether it is seen or not."""

    def __init__(self, tabs: Tabs, target: str, session: str) -> None:
        self._tabs = tabs
        self._target = target
        self._session = session

    async def evaluate(self, expression: str) -> Any:
        """Return what a script in it returns; None while there is no page, between two of them."""
        answer = await self._tabs.send(
            "Runtime.evaluate", self._session, expression=expression, returnByValue=True
        )
        return answer.get("result", {}).get("value")

    async def to_front(self) -> None:
        """Show it, and hide the others."""
        await self._tabs.send("Target.activateTarget", targetId=self._target)


class Tabs:
    """The tabs of one window, driven by the protocol of the browser's own tools."""

    def __init__(self, commands: int, answers: asyncio.StreamReader) -> None:
        self._commands = commands
        self._answers = answers
        self._numbers = itertools.count(1)

    async def send(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Send a command and return its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        async with asyncio.timeout(60):
            while True:
                answer = json.loads((await self._answers.readuntil(b"\0"))[:-1])
                if answer.get("id") == number:
                    return answer.get("result", {})

    async def open(self, url: str) -> Tab:
        """Open a tab in front of the others."""
        target = (await self.send("Target.createTarget", url=url))["targetId"]
        attached = await self.send("Target.attachToTarget", targetId=target, flatten=True)
        return Tab(self, target, attached["sessionId"])


@asynccontextmanager
async def open_tabs(browser: str, folder: Path) -> AsyncIterator[Tabs]:
    """Start a browser of its own, and end it."""
    (its_in, commands), (answers, its_out) = os.pipe(), os.pipe()
    # It reads commands from its file 3, and writes answers to 4.
    line = f'exec "$@" 3<&{its_in} 4>&{its_out}'
    options = ("--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}")
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", line, "bash", browser, *FLAGS, *options, "about:blank",
        pass_fds=(its_in, its_out), stdout=DEVNULL, stderr=DEVNULL,
    )  # fmt: skip
    os.close(its_in)
    os.close(its_out)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb")
    )
    try:
        yield Tabs(commands, reader)
    finally:
        process.terminate()
        await process.wait()
        transport.close()
        os.close(commands)
