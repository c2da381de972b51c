"""What is different about an encrypted task: its lanes show no arguments, which are sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import InvalidSetting, MissingEncryptionKey
from headrace.model.job import NewJob
from headrace.model.limits.lane import Lane

if TYPE_CHECKING:
    from headrace.encryption import Sealing


def check_lane(task: str, lane: Lane | None) -> None:
    """Refuse a lane that would show arguments of an encrypted task."""
    if lane is not None and (fields := sorted(lane.fields() | lane.cost_fields())):
        raise InvalidSetting(
            f'task "{task}" is encrypted, but its lane {lane.template!r} would store '
            f"{', '.join(fields)} in plain; use a lane without arguments, or say that they may be "
            "seen: plain_lane=True"
        )


def seal_arguments(job: NewJob, sealing: Sealing | None) -> None:
    """Seal the arguments, for this job alone. From here on nobody can store them in plain."""
    if sealing is None:
        raise MissingEncryptionKey(
            f'task "{job.task}" is encrypted, but this process has no encryption keys; give it '
            "some: HEADRACE_ENCRYPTION_KEYS, HEADRACE_ENCRYPTION_KEY_FILE, or App(encryption=…)"
        )
    if job.policy is not None and job.policy.on_duplicate == "debounce":
        raise InvalidSetting(
            f'task "{job.task}" is encrypted: its arguments are sealed for one job, so they cannot '
            'become those of an earlier one; use on_duplicate="replace"'
        )
    job.args = sealing.args(job.id, job.args)
