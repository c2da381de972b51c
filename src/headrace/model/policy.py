"""What a task asks for: its queue, lane, retries, time, isolation and chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from headrace.errors import InvalidSetting
from headrace.model.job import PRIORITY_LIMIT, OnCrash
from headrace.model.limits.lane import Lane
from headrace.model.names import check_name
from headrace.model.retry import RetryPolicy
from headrace.model.times import check_delay, is_number

Isolation = Literal["none", "process"]
LONGEST_TIMEOUT = 30 * 86_400.0
LARGEST_CHUNK = 1_000
LONGEST_CHUNK_WAIT = 600.0
CHUNK_WAIT = 0.2
# The word for the lane of a job, in `chunk_by`.
BY_LANE = "lane"


class TaskPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy of a task; single jobs may differ by `options`.

    A job that has not started `expires` seconds after it was stored is cancelled.
    `never_retry` holds exception classes, or their names. `memory_limit`, for each process, and
    `tree_memory_limit`, for the handler's process and all that it starts together, are in bytes and
    need `isolate="process"`. `encrypt` None is as the App says; `plain_lane` lets the lane of an
    encrypted task show arguments.

    One call of the handler gets up to `chunk` jobs; it waits `chunk_wait` seconds for them, from
    the first on. `chunk_by` is an argument, or "lane": all jobs of a call have the same.
    """

    queue: str = "default"
    priority: int = 0
    lane: Lane | None = None
    retry: RetryPolicy = RetryPolicy()
    timeout: float | None = 600.0
    expires: float | None = None
    on_crash: OnCrash = "retry"
    never_retry: tuple[type[BaseException] | str, ...] = ()
    isolate: Isolation = "none"
    memory_limit: int | None = None
    tree_memory_limit: int | None = None
    encrypt: bool | None = None
    plain_lane: bool = False
    chunk: int | None = None
    chunk_wait: float | None = None
    chunk_by: str | None = None

    def __post_init__(self) -> None:
        check_name("queue", self.queue)
        check_priority(self.priority)
        check_timeout(self.timeout)
        check_expires(self.expires)
        if not isinstance(self.retry, RetryPolicy):
            raise InvalidSetting(
                f"retry must be a headrace.RetryPolicy, got {self.retry!r}; for a number of "
                "retries use retries="
            )
        check_never_retry(self.never_retry)
        if self.on_crash not in ("retry", "fail"):
            raise InvalidSetting(f'on_crash must be "retry" or "fail", got {self.on_crash!r}')
        if self.isolate not in ("none", "process"):
            raise InvalidSetting(f'isolate must be "none" or "process", got {self.isolate!r}')
        if not isinstance(self.encrypt, bool | None):
            raise InvalidSetting(f"encrypt must be True or False, got {self.encrypt!r}")
        if not isinstance(self.plain_lane, bool):
            raise InvalidSetting(f"plain_lane must be True or False, got {self.plain_lane!r}")
        for name in ("memory_limit", "tree_memory_limit"):
            limit = getattr(self, name)
            if limit is None:
                continue
            if self.isolate != "process":
                raise InvalidSetting(f'{name} needs isolate="process"')
            if not is_number(limit) or not 1 <= limit < float("inf"):
                raise InvalidSetting(f"{name} must be a number of bytes, got {limit!r}")
        self._check_chunk()

    def _check_chunk(self) -> None:
        if self.chunk is None:
            for name in ("chunk_wait", "chunk_by"):
                if getattr(self, name) is not None:
                    raise InvalidSetting(
                        f"{name} needs chunk=, the number of jobs that one call gets"
                    )
            return
        if not _is_whole(self.chunk) or not 1 <= self.chunk <= LARGEST_CHUNK:
            raise InvalidSetting(
                f"chunk must be a number of jobs from 1 to {LARGEST_CHUNK:,}, got {self.chunk!r}"
            )
        wait = self.seconds_to_fill
        if not is_number(wait) or not 0 <= wait <= LONGEST_CHUNK_WAIT:
            raise InvalidSetting(
                f"chunk_wait must be between 0 and {LONGEST_CHUNK_WAIT:g} seconds, got {wait!r}"
            )
        if self.chunk_by is not None and not isinstance(self.chunk_by, str):
            raise InvalidSetting(
                f'chunk_by must be the name of an argument, or "lane", got {self.chunk_by!r}'
            )
        if self.isolate == "process":
            raise InvalidSetting(
                'chunk does not work with isolate="process": a child process serves one job; use '
                "a plain `def` handler, which runs in a thread, or leave out one of them"
            )

    @property
    def seconds_to_fill(self) -> float:
        """How long the first job of a chunk waits for others."""
        return CHUNK_WAIT if self.chunk_wait is None else self.chunk_wait


def check_never_retry(never: Iterable[object]) -> None:
    """Each of them is a class of exceptions, or the name of one."""
    if isinstance(never, str | type):
        raise InvalidSetting(f"never_retry must be a list, got {never!r}; write [{_shown(never)}]")
    if not isinstance(never, Iterable):
        raise InvalidSetting(f"never_retry must be a list of exception classes, got {never!r}")
    for item in never:
        if isinstance(item, str) and item.isidentifier():
            continue
        if not isinstance(item, type):
            raise InvalidSetting(
                "never_retry holds exception classes, or their names without a module, got "
                f"{item!r}" + (f"; write {_shown(type(item))}" if _raised(type(item)) else "")
            )
        if not _raised(item):
            raise InvalidSetting(
                f"never_retry holds exception classes, or their names, got {item!r}, which "
                "cannot be raised"
            )


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _raised(kind: type) -> bool:
    return issubclass(kind, BaseException)


def _shown(kind: str | type) -> str:
    return repr(kind) if isinstance(kind, str) else kind.__name__


def check_priority(priority: int) -> int:
    """Priorities are small whole numbers; higher runs first."""
    if not _is_whole(priority) or abs(priority) > PRIORITY_LIMIT:
        raise InvalidSetting(
            f"priority must be a whole number between -{PRIORITY_LIMIT} and {PRIORITY_LIMIT}, "
            f"got {priority!r}"
        )
    return priority


def check_timeout(timeout: float | None) -> float | None:
    """A timeout is a number of seconds above zero, or None for no limit."""
    if timeout is None:
        return None
    if not is_number(timeout) or not 0 < timeout <= LONGEST_TIMEOUT:
        raise InvalidSetting(
            f"timeout must be more than 0 and at most {LONGEST_TIMEOUT:.0f} seconds, or None, "
            f"got {timeout!r}"
        )
    return timeout


def check_expires(expires: float | None) -> float | None:
    """A time to start within is a number of seconds above zero, or None for no limit."""
    if expires is None:
        return None
    seconds = check_delay(expires, "expires")
    if not seconds > 0:
        raise InvalidSetting(f"expires must be more than 0 seconds, or None, got {expires!r}")
    return seconds
