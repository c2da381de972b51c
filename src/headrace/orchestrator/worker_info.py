"""The identity that a worker registers with."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
from collections.abc import Collection, Sequence

from headrace.model.ids import new_id
from headrace.model.names import NAME_LIMIT, check_name
from headrace.model.worker import Worker, WorkerInfo
from headrace.version import __version__

log = logging.getLogger("headrace.worker")


def make_worker_info(
    *, name: str | None, queues: tuple[str, ...], slots: int, tasks: tuple[str, ...]
) -> WorkerInfo:
    """Return the identity of this process, under the given name or a unique one."""
    host = socket.gethostname()
    if name is None:
        plain = re.sub(r"[^A-Za-z0-9_.:-]", "-", host).lstrip(".:-") or "host"
        name = f"{plain[:80]}-{os.getpid()}-{secrets.token_hex(3)}"
    return WorkerInfo(
        id=new_id(),
        name=check_name("worker", name),
        host=host,
        pid=os.getpid(),
        version=__version__,
        queues=queues,
        slots=slots,
        tasks=tasks,
    )


def with_unique_suffix(name: str) -> str:
    """Return a name for a worker whose own is in use by another process."""
    return f"{name[: NAME_LIMIT - 7]}-{secrets.token_hex(3)}"


def name_after_loss(name: str, own_ids: Collection[str], workers: Sequence[Worker]) -> str:
    """Say why a lease that was renewed in time is lost, and return the name to go on with.

    If another process has registered under our name, and both kept it, they would take it from
    each other in turns and lose all their jobs each time.
    """
    if any(each.alive and each.name == name and each.id not in own_ids for each in workers):
        other = with_unique_suffix(name)
        log.error(
            "Another worker has registered as %r; this one goes on as %r. Give each worker a "
            "name of its own (HEADRACE_WORKER_NAME).",
            name,
            other,
        )
        return other
    if not any(each.id in own_ids for each in workers):
        log.error(
            "The store does not know worker %r any more, though its lease was renewed in time: "
            "it was emptied (FLUSHALL), or restored to an earlier time. Jobs may be gone.",
            name,
        )
    # Otherwise the clock of the store went ahead. The name stays ours.
    return name
