"""The verbs of a Client for code without an event loop: Django, Flask, scripts, threads.

with headrace.client.sync.Client("https://jobs.example.com") as client:
    job = client.enqueue("invoice.send", {"customer_id": 42})
    value = client.result(job.id, timeout=30)

Type checkers read the generated `sync.pyi`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from headrace.client.base import ClientOptions
from headrace.client.client import Client as AsyncClient
from headrace.loops.loop_thread import LoopThread, blocking

Value = TypeVar("Value")

WOULD_BLOCK = "this would block the event loop; use headrace.Client and `await` here"


@blocking(AsyncClient, "client", also=["job"])
class SyncClient:
    """A Client whose verbs block. `.client` is the ordinary Client behind it.

    Any number of threads may share it: they share its connections too.
    """

    client: AsyncClient
    _thread: LoopThread

    def __init__(self, url: str | None = None, **options: Unpack[ClientOptions]) -> None:
        self.client = AsyncClient(url, **options)
        self._thread = LoopThread(
            "headrace-client", last=self.client.close, would_block=WOULD_BLOCK
        )

    def __repr__(self) -> str:
        return f"<SyncClient {self.client.url}>"

    def close(self) -> None:
        """Close every connection and end the thread. The Client can be used again. Callers that
        wait for an answer in other threads get an error.
        """
        self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, verb: Coroutine[Any, Any, Value]) -> Value:
        return self._thread.run(verb)

    if TYPE_CHECKING:  # where the stub is not found

        def __getattr__(self, name: str) -> Any: ...


Client = SyncClient
