"""What is different about a task whose handler gets chunks of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import InvalidSetting
from headrace.model.policy import BY_LANE, TaskPolicy
from headrace.task.signature import Signature


def signature_of(name: str, function: Callable[..., Any], policy: TaskPolicy) -> Signature:
    """Return what a handler takes, by its policy."""
    if policy.chunk is None:
        return Signature(name, function)
    from headrace.task.chunk_signature import ChunkSignature  # noqa: PLC0415 - few tasks have one

    return ChunkSignature(name, function)


def check_chunk_by(name: str, policy: TaskPolicy, signature: Signature) -> None:
    """Refuse `chunk_by` if jobs have no such argument."""
    by = policy.chunk_by
    if by == BY_LANE and by in signature.names:
        raise InvalidSetting(
            f'task "{name}": chunk_by="lane" is the lane of a job, and an argument is called so, '
            "too; give the argument another name"
        )
    if by is not None and by != BY_LANE and by not in signature.names:
        raise InvalidSetting(
            f'task "{name}": chunk_by reads {by!r}, but a job takes '
            f'{", ".join(signature.names) or "no arguments"}; name one of them, or "lane"'
        )
