"""Runs of workflows with encrypted tasks: their parameters and what steps return are sealed.

The workflow itself is not, and neither is how a step ended: whoever has no keys sees how far a run
is, and can begin it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import InvalidInput, MissingEncryptionKey, SealedValue
from headrace.model.job import Job, NewJob
from headrace.model.limits.lane import Lane
from headrace.model.sealed import is_sealed, key_of_args, shown_document
from headrace.task import Task
from headrace.workflows.model import Workflow

if TYPE_CHECKING:
    from headrace.encryption import Sealing
    from headrace.orchestrator.running.context import JobContext


def encrypted_tasks(workflow: Workflow, tasks: Mapping[str, Task[..., Any]]) -> list[str]:
    """Return the tasks of a workflow that are encrypted, as far as they are known here."""
    known = (tasks.get(step.task) for step in workflow.steps)
    return sorted({task.name for task in known if task is not None and task.encrypted})


def seal_run(
    job: NewJob,
    workflow: Workflow,
    tasks: Mapping[str, Task[..., Any]],
    sealing: Sealing | None,
) -> None:
    """Seal the parameters of a run, if one of its tasks is encrypted."""
    names = encrypted_tasks(workflow, tasks)
    if not names:
        return
    if sealing is None:
        raise MissingEncryptionKey(
            f'workflow "{workflow.id}" has the encrypted task "{names[0]}", but this process has '
            "no encryption keys; give it some: HEADRACE_ENCRYPTION_KEYS or "
            "HEADRACE_ENCRYPTION_KEY_FILE"
        )
    fields = [] if workflow.lane is None else sorted(Lane(workflow.lane).fields())
    if fields and not all(tasks[name].policy.plain_lane for name in names):
        raise InvalidInput(
            f'workflow "{workflow.id}" has the encrypted task "{names[0]}", but its lane '
            f"{workflow.lane!r} would store {', '.join(fields)} in plain; use a lane without "
            "parameters, or say at the task that they may be seen: plain_lane=True"
        )
    parts = msgspec.json.decode(job.args, type=dict[str, msgspec.Raw])
    job.args = sealing.run_args(job.id, bytes(parts["params"]), bytes(parts["workflow"]))


def seal_if_needed(
    ctx: JobContext, workflow: Workflow, tasks: Mapping[str, Task[..., Any]]
) -> None:
    """Seal what a run stores from now on if one of its tasks is encrypted by now. Raises
    `MissingEncryptionKey` where there are no keys: another worker goes on with it.
    """
    if not ctx.sealed and encrypted_tasks(workflow, tasks):
        _seal_from_now(ctx)


def openable(ctx: JobContext, jobs: Sequence[Job], sealing: Sealing | None) -> Sequence[Job]:
    """Return jobs of steps whose results can be read. If one is sealed, so is what the run stores
    of it.
    """
    for job in jobs:
        job.opener = sealing
        if not ctx.sealed and key_of_args(job.args_json) is not None:
            _seal_from_now(ctx)
    return jobs


def _seal_from_now(ctx: JobContext) -> None:
    assert ctx.sealing is not None  # noqa: S101 - it raises without keys
    ctx.seal_from_now()


def sealed_file(ctx: JobContext, name: str, content: bytes) -> bytes:
    """Return the content of a file that a run stores, sealed if what it stores is."""
    return ctx.sealing.file(ctx.job_id, name, content) if ctx.sealed else content


def arguments_of(job: Job) -> dict[str, Any]:
    """Return the workflow of a run and its parameters: of sealed ones that cannot be opened, what
    they are sealed with.
    """
    if key_of_args(job.args_json) is None:
        return job.args
    with contextlib.suppress(SealedValue):
        if job.opener is not None:
            return job.args
    shown: dict[str, Any] = msgspec.json.decode(shown_document(job.args_json))
    return shown


def shown_result(job: Job) -> Any:
    """Return the result of a run for its view: of one that cannot be opened, what it is sealed
    with.
    """
    result = job.result_json
    if result is None or not is_sealed(result):
        return job.result
    try:
        return job.result
    except SealedValue:
        return msgspec.json.decode(shown_document(result))
