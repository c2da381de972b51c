"""Views that somebody has open. Each is looked at for all its readers together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable

from headrace.errors import HeadraceError
from headrace.server.dashboard.render import BANNER, banner, digest
from headrace.server.http.problems import Refused, refused
from headrace.server.service import Service

log = logging.getLogger("headrace.server")

# A view is looked at this often.
PACE = 0.5
# While looks take long, because the store or this process is busy, they are to take a fiftieth of
# the time; but what is shown is not to become a second old.
SHARE = 50
BUSY_PACE = 0.75
# One that takes very long is looked at for a fifth of the time at most.
MOST_SHARE = 5

Parts = dict[str, str]
LookAt = Callable[[], Awaitable[Parts]]


class Reader:
    """One open stream. It holds the newest of each part that it has not sent yet."""

    def __init__(self, state: str) -> None:
        self._known = state
        self._waiting: Parts = {}
        self._wake = asyncio.Event()
        self.state = state
        self.ended = False

    def offer(self, changed: Parts, whole: Parts, state: str) -> None:
        """Give it what has changed; at first everything, unless it has just that already."""
        if self._known:
            changed = {} if self._known == state else whole
            self._known = ""
        self._waiting |= changed
        self.state = state
        if self._waiting:
            self._wake.set()

    async def next(self, seconds: float) -> Parts:
        """Return the parts that have changed since; none after some time, or at the end."""
        if not self._waiting and not self.ended:
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                pass
        self._wake.clear()
        waiting, self._waiting = self._waiting, {}
        return waiting

    def end(self) -> None:
        """End the stream."""
        self.ended = True
        self._wake.set()


def pace(took: float) -> float:
    """Return after how long a look that took so long is followed by the next one."""
    return max(PACE, min(SHARE * took, BUSY_PACE), MOST_SHARE * took)


class View:
    """A page as some callers see it.

    No reader is offered a look that began before it came: its page was made after that, and would
    go back to what was there before, such as before the form that it has just sent.
    """

    def __init__(self, look: LookAt) -> None:
        self._look = look
        self._parts: Parts = {}
        self.readers: set[Reader] = set()
        self.task: asyncio.Task[None] | None = None

    def join(self, reader: Reader) -> None:
        """Look for one more, from the next time on."""
        self.readers.add(reader)
        if self.task is None:
            self.task = asyncio.create_task(self._run(), name="headrace dashboard view")

    def leave(self, reader: Reader) -> None:
        """Stop looking when nobody is left."""
        self.readers.discard(reader)
        if not self.readers and self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            readers = tuple(self.readers)
            parts = await self._seen()
            changed = {name: html for name, html in parts.items() if self._parts.get(name) != html}
            # What cannot be shown now stays as it was seen last.
            self._parts = self._parts | parts
            state = digest(self._parts)
            for reader in readers:
                reader.offer(changed, self._parts, state)
            took = loop.time() - began
            await asyncio.sleep(pace(took) - took)

    async def _seen(self) -> Parts:
        try:
            return await self._look()
        except Refused as error:
            return {BANNER: banner(error.problem)}
        except HeadraceError as error:
            return {BANNER: banner(refused(error).problem)}
        except Exception:
            log.exception("a page of the dashboard failed")
            detail = "this page could not be made; see the server's log"
            return {BANNER: banner(Refused(500, "server-error", detail).problem)}


class Views:
    """All views that are open at one server."""

    def __init__(self, _: Service) -> None:
        self.open: dict[Hashable, View] = {}

    def join(self, key: Hashable, look: LookAt, reader: Reader) -> View:
        """Add a reader to a view; the first one opens it."""
        view = self.open.get(key)
        if view is None:
            view = self.open[key] = View(look)
        view.join(reader)
        return view

    def leave(self, key: Hashable, reader: Reader) -> None:
        """Take a reader away; the last one closes the view."""
        view = self.open[key]
        view.leave(reader)
        if not view.readers:
            del self.open[key]
