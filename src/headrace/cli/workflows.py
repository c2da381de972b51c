"""`headrace workflows`: look at workflows, check their files, run them and follow a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headrace.cli import backend as backends
from headrace.cli.command import argument, flag, group, option
from headrace.cli.enqueue.arguments import read_arguments
from headrace.cli.formatting import ago, parse_span
from headrace.cli.ids import whole_id
from headrace.cli.output import Columns, print_fields, print_json, print_line, print_table
from headrace.cli.session import CliSession

if TYPE_CHECKING:
    from headrace.workflows.model import Param, Step, Workflow
    from headrace.workflows.steps import StepView

commands = group("List, check and run workflows, and follow their runs.")

WORKFLOW = argument("workflow", "WORKFLOW", "The id of the workflow.")
RUN = argument("run_id", "RUN", "The id of the run's job, or its beginning.")
VERSION = option("--version", "VERSION", "This version instead of the newest.")


@commands.command("list")
async def list_workflows(session: CliSession) -> None:
    """List the workflows of the App: those in its folder, and those in its code.

    headrace workflows list --app shop.jobs
    """
    async with session.backend(needs_app=True) as backend:
        known = await backends.list_workflows(backend)
    columns: Columns[Workflow] = {
        "WORKFLOW": lambda each: each.id,
        "VERSION": lambda each: each.version,
        "STEPS": lambda each: len(each.steps),
        "QUEUE": lambda each: each.queue,
        "PARAMS": lambda each: ", ".join(each.params) or "-",
        "DESCRIPTION": lambda each: each.description or "-",
    }
    empty = "No workflows yet; put a file into the folder workflows/"
    session.show_list("workflows", known, columns, empty=empty)


@commands.command("show")
@WORKFLOW
@VERSION
async def show(session: CliSession, *, workflow: str, version: str | None) -> None:
    """Show a workflow: its parameters, and its steps in the order in which they can run.

    headrace workflows show prices --app shop.jobs
    """
    async with session.backend(needs_app=True, task=workflow) as backend:
        found = await backends.get_workflow(backend, workflow, version)
    columns: Columns[Step] = {
        "STEP": lambda step: step.id,
        "TASK": lambda step: step.task,
        "AFTER": lambda step: ", ".join(step.depends_on) or "-",
        "FOR EACH": lambda step: "-" if step.each is None else step.each,
        "WHEN": lambda step: "-" if step.when is None else step.when,
    }
    if session.json:
        print_json(found)
        return
    params = ", ".join(_param(name, each) for name, each in found.params.items())
    print_fields(
        [
            ("workflow", found.id),
            ("version", found.version),
            ("description", found.description or "-"),
            ("queue", found.queue),
            ("lane", found.lane or "-"),
            ("params", params or "-"),
        ]
    )
    print_table(columns, found.steps)


def _param(name: str, param: Param) -> str:
    text = f"{name}: {param.type}"
    if param.default is msgspec.UNSET:
        return text
    return f"{text} = {msgspec.json.encode(param.default).decode()}"


@commands.command("check")
@argument("paths", "[FILE]...", "Files or folders (default workflows/).", nargs=-1)
async def check(session: CliSession, *, paths: tuple[str, ...]) -> int:
    """Check workflow files against the tasks of the App. Lists every problem with its line.

    headrace workflows check --app shop.jobs
    headrace workflows check workflows/prices.yaml --app shop.jobs
    """
    app = session.load_app()
    from headrace.workflows.load import check_files  # noqa: PLC0415 - an extra

    checked = check_files(paths or [app.settings.workflows], app.tasks)
    bad = [each for each in checked if each.problems]
    if session.json:
        print_json({"ok": not bad, "files": checked})
    else:
        for each in checked:
            for line in each.problems or [f"{each.file}: ok"]:
                print_line(line)
        if not checked:
            print_line("There are no workflow files.")
    return 1 if bad else 0


@commands.command("run")
@WORKFLOW
@argument("values", "[NAME=VALUE]...", "Parameters: JSON if it parses, else text.", nargs=-1)
@option("--params", "JSON", "Parameters as JSON, @file, or - for stdin.")
@VERSION
@option("--key", "KEY", "Idempotency key: at most one run has it.")
@option("--priority", "N", "Higher runs first (default: that of the workflow).", type=int)
@flag("--wait", "Wait for the result and print it.")
@option("--timeout", "SPAN", "Wait at most this long.")
async def run(
    session: CliSession,
    *,
    workflow: str,
    wait: bool,
    values: tuple[str, ...],
    params: str | None,
    timeout: str | None,
    priority: int | None,
    **which: Any,
) -> None:
    """Run a workflow and print the id of the run.

    headrace workflows run prices platform=musinsa --app shop.jobs
    headrace workflows run prices --params @params.json --wait --timeout 10m
    """
    limit = None if timeout is None else parse_span("--timeout", timeout)
    given = read_arguments(values, params, session.settings.payload_limit)
    if priority is not None:
        which["priority"] = priority
    async with session.backend(needs_app=True, task=workflow) as backend:
        begun = await backend.run_workflow(workflow, given, **which)
        job = await backend.get(begun.job_id)
        if not wait:
            session.show(job.to_dict(), job.id)
            return
        result = await backend.result(job.id, limit)
        print_json((await backend.get(job.id)).to_dict() if session.json else result)


@commands.command("status")
@RUN
async def status(session: CliSession, *, run_id: str) -> None:
    """Show a run: the state of each of its steps.

    headrace workflows status 01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11
    """
    async with session.backend() as backend:
        view = await backend.follow_run(await whole_id(backend, run_id))
    now = backends.time_now(backend)
    columns: Columns[StepView] = {
        "STEP": lambda step: step.id,
        "STATUS": lambda step: step.status,
        "TASK": lambda step: step.task,
        "JOBS": lambda step: f"{step.done}/{step.jobs}" if step.jobs else "-",
        "STARTED": lambda step: ago(step.started_at, now),
        "TOOK": _took,
    }
    if session.json:
        print_json(view)
        return
    print_fields(
        [
            ("run", view.job_id),
            ("workflow", f"{view.workflow_id} (version {view.version})"),
            ("status", view.status),
            ("params", msgspec.json.encode(view.params).decode()),
        ]
    )
    print_table(columns, view.steps)
    for step in view.steps:
        if step.error is not None:
            print_line(f"{step.id}: {step.error}")


def _took(step: StepView) -> str:
    if step.started_at is None or step.ended_at is None:
        return "-"
    return f"{(step.ended_at - step.started_at).total_seconds():.2f} s"


@commands.command("retry")
@RUN
@option("from_step --from", "STEP", "Repeat this step and those that depend on it.")
async def retry(session: CliSession, *, run_id: str, from_step: str | None) -> None:
    """Run a finished run again: what did not complete, or from a step on.

    Steps that are not repeated keep their results.

      headrace workflows retry 01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11 --from parse
    """
    async with session.backend() as backend:
        run_id = await whole_id(backend, run_id)
        steps = await backend.retry_run(run_id, from_step)
    text = f"Run {run_id} goes on with: {', '.join(steps)}"
    session.show({"job_id": run_id, "steps": steps}, text)
