"""`headrace.sync.App.artifacts`: the verbs of `app.artifacts` for code without an event loop.

Type checkers read the generated `sync_artifacts.pyi`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.admin.artifacts import AppArtifacts
from headrace.loops.loop_thread import LoopThread, blocking

Value = TypeVar("Value")


@blocking(AppArtifacts, "artifacts")
class SyncArtifacts:
    """Files of jobs, with verbs that block. `.artifacts` are those of the App behind it."""

    artifacts: AppArtifacts
    _thread: LoopThread
    _wait_for: Callable[[Coroutine[Any, Any, Any]], Any]

    def __init__(
        self,
        artifacts: AppArtifacts,
        thread: LoopThread,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
    ) -> None:
        self.artifacts = artifacts
        self._thread = thread
        self._wait_for = run

    @property
    def where(self) -> str:
        """The folder or the bucket, without secrets."""
        return self.artifacts.where

    def _run(self, verb: Coroutine[Any, Any, Value]) -> Value:
        value: Value = self._wait_for(verb)
        return value

    if TYPE_CHECKING:  # where the stub is not found

        def __getattr__(self, name: str) -> Any: ...
