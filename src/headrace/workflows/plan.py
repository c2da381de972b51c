"""What comes next in a run: decided from what is known of its steps, without any I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from headrace.workflows.conditions import Condition
from headrace.workflows.model import Step, Workflow
from headrace.workflows.references import resolve

Ended = Literal["completed", "failed", "skipped"]


class StepEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a step ended. What was skipped or failed has no output."""

    status: Ended
    output: Any = None
    error: str | None = None
    jobs: int = 0


def fatal(workflow: Workflow, ends: Mapping[str, StepEnd]) -> list[str]:
    """The steps that failed and whose failure is the workflow's."""
    return [
        step.id
        for step in workflow.steps
        if step.on_failure == "fail" and step.id in ends and ends[step.id].status == "failed"
    ]


def next_steps(workflow: Workflow, ends: Mapping[str, StepEnd], started: set[str]) -> list[Step]:
    """The steps that can be begun now: neither begun nor over, and all before them are over.

    Once a step has failed that must not, nothing more is begun.
    """
    if fatal(workflow, ends):
        return []
    return [
        step
        for step in workflow.steps
        if step.id not in ends
        and step.id not in started
        and all(needed in ends for needed in step.depends_on)
    ]


def skipped(step: Step, ends: Mapping[str, StepEnd], scope: Mapping[str, Any]) -> bool:
    """Whether a step that could be begun is passed over: its condition is false, or there is no
    way to it because all that it depends on was passed over.
    """
    before = step.depends_on
    if before and all(ends[needed].status == "skipped" for needed in before):
        return True
    if isinstance(step.when, str):
        return not Condition(step.when).holds(scope)
    return step.when is False


def scope_of(run_id: str, params: Mapping[str, Any], ends: Mapping[str, StepEnd]) -> dict[str, Any]:
    """What references stand for at this point of a run."""
    steps = {name: {"output": end.output, "status": end.status} for name, end in ends.items()}
    return {"params": params, "run": {"id": run_id}, "steps": steps}


def result_of(workflow: Workflow, ends: Mapping[str, StepEnd], scope: Mapping[str, Any]) -> Any:
    """What a run that is over results in."""
    if workflow.output is not None:
        return resolve(workflow.output, scope)
    return {step.id: ends[step.id].output for step in workflow.last()}
