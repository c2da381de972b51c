"""The identity that a worker registers with."""

from __future__ import annotations

import os
import re
import secrets
import socket

from headrace.model.ids import new_id
from headrace.model.names import NAME_LIMIT, check_name
from headrace.model.worker import WorkerInfo
from headrace.version import __version__


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
