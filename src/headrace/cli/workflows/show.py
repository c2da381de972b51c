"""Workflows and their runs, for people."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.cli.formatting import ago
from headrace.cli.output import print_fields, print_line, print_table
from headrace.workflows.model import Param, Workflow
from headrace.workflows.steps import RunView, StepView


def summary(workflow: Workflow) -> list[tuple[str, str]]:
    """A workflow without its steps."""
    return [
        ("workflow", workflow.id),
        ("version", str(workflow.version)),
        ("description", workflow.description or "-"),
        ("queue", workflow.queue),
        ("lane", workflow.lane or "-"),
        ("params", ", ".join(_param(name, each) for name, each in workflow.params.items()) or "-"),
    ]


def print_run(view: RunView, now: datetime) -> None:
    """A run with its steps."""
    print_fields(
        [
            ("run", view.job_id),
            ("workflow", f"{view.workflow_id} (version {view.version})"),
            ("status", view.status),
            ("params", msgspec.json.encode(view.params).decode()),
        ]
    )
    print_table(
        ("STEP", "STATUS", "TASK", "JOBS", "STARTED", "TOOK"),
        [
            (
                step.id,
                step.status,
                step.task,
                f"{step.done}/{step.jobs}" if step.jobs else "-",
                "-" if step.started_at is None else ago(step.started_at, now),
                _took(step),
            )
            for step in view.steps
        ],
    )
    for step in view.steps:
        if step.error is not None:
            print_line(f"{step.id}: {step.error}")


def _param(name: str, param: Param) -> str:
    text = f"{name}: {param.type}"
    if param.default is msgspec.UNSET:
        return text
    return f"{text} = {msgspec.json.encode(param.default).decode()}"


def _took(step: StepView) -> str:
    if step.started_at is None or step.ended_at is None:
        return "-"
    return f"{(step.ended_at - step.started_at).total_seconds():.2f} s"
