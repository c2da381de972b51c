"""An adapter of one's own: every file that is put into a folder is a message.

Write a file under another ending and rename it to `.json` when it is whole.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from headrace.dispatchers.events.adapter import Message, QueueAdapter


class FolderAdapter(QueueAdapter):
    """Takes files by moving them aside, so that each goes to one dispatcher.

    Files that a dispatcher took and neither completed nor gave back are put back by another one
    after `forget_after_seconds`.
    """

    name = "folder"

    def __init__(
        self, *, folder: str, batch_size: int = 100, forget_after_seconds: float = 60.0
    ) -> None:
        self.folder = Path(folder)
        self.taken = self.folder / "taken"
        self.batch_size = batch_size
        self.forget_after = forget_after_seconds
        self.mine: set[Path] = set()

    async def connect(self) -> None:
        self.taken.mkdir(parents=True, exist_ok=True)

    async def disconnect(self) -> None:
        for path in list(self.mine):
            self._put_back(path)

    async def receive(self) -> AsyncIterator[Sequence[Message]]:
        while True:
            self._recover()
            batch = self._take()
            if batch:
                yield batch
            else:
                await asyncio.sleep(0.2)

    async def complete(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.mine.discard(message.receipt)
            message.receipt.unlink(missing_ok=True)

    async def abandon(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._put_back(message.receipt)

    async def lag(self) -> int:
        return len(list(self.folder.glob("*.json"))) + len(list(self.taken.glob("*.json")))

    def _take(self) -> list[Message]:
        batch = []
        for path in sorted(self.folder.glob("*.json"))[: self.batch_size]:
            aside = self.taken / f"{time.time():.3f} {path.name}"
            try:
                path.rename(aside)  # of several dispatchers one succeeds
                sent_at = aside.stat().st_mtime
                body = aside.read_bytes()
            except FileNotFoundError:
                continue
            self.mine.add(aside)
            batch.append(
                Message(
                    body=body,
                    topic=str(self.folder),
                    # The same name and time is the same message, however often it comes.
                    key=f"folder:{path.name}",
                    sent_at=sent_at,
                    receipt=aside,
                )
            )
        return batch

    def _put_back(self, path: Path) -> None:
        self.mine.discard(path)
        # It may be completed by now, or somebody else has put it back.
        with contextlib.suppress(FileNotFoundError):
            path.rename(self.folder / path.name.partition(" ")[2])

    def _recover(self) -> None:
        for path in self.taken.glob("*.json"):
            taken_at = float(path.name.partition(" ")[0])
            if path not in self.mine and time.time() - taken_at > self.forget_after:
                self._put_back(path)
