# Made by `python -m tests.support.sync_stubs`; do not edit.

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from headrace.admin.artifacts import AppArtifacts
from headrace.loops.loop_thread import LoopThread
from headrace.model.artifact import Artifact, Content, KeptFile, KeptPage
from headrace.sync import _Verbs

Value = TypeVar("Value")

class SyncArtifacts(_Verbs):
    artifacts: AppArtifacts
    _wait_for: Callable[[Coroutine[Any, Any, Any]], Any]

    def __init__(
        self,
        artifacts: AppArtifacts,
        thread: LoopThread,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
    ) -> None: ...
    @property
    def where(self) -> str: ...
    def put(
        self, name: str, data: Content, *, job_id: str | None = None, media_type: str | None = None
    ) -> Artifact: ...
    def get(self, path: str, *, sha256: str | None = None) -> bytes: ...
    def stream(
        self, path: str, *, start: int = 0, end: int | None = None, sha256: str | None = None
    ) -> Iterator[bytes]: ...
    def list(self, job_id: str) -> Sequence[Artifact]: ...
    def remove(self, path: str) -> None: ...
    def keep(self, path: str, *, owner: str, reason: str = "") -> KeptFile: ...
    def release(self, path: str, *, owner: str) -> bool: ...
    def kept(
        self, owner: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> KeptPage: ...
