"""Who a worker is."""

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
    """Make a worker known under its given name, or one that nobody else has."""
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
    """A name beside one that another process has taken."""
    return f"{name[: NAME_LIMIT - 7]}-{secrets.token_hex(3)}"
