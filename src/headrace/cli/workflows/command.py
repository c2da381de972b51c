"""`headrace workflows`: look at workflows, check their files, run them and follow a run."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from headrace.cli.command import command, group
from headrace.cli.enqueue.arguments import read_arguments
from headrace.cli.formatting import parse_span
from headrace.cli.output import is_terminal, print_fields, print_json, print_line, print_table
from headrace.cli.session import Session
from headrace.cli.workflows.backend import workflow_verbs
from headrace.cli.workflows.show import print_run, summary

commands = group("List, check and run workflows, and follow their runs.")

WorkflowId = Annotated[str, typer.Argument(metavar="WORKFLOW", help="The id of the workflow.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The id of the run's job.")]
Version = Annotated[
    str | None, typer.Option("--version", metavar="VERSION", help="Not the newest, but this one.")
]


@command(commands, "list")
async def list_workflows(session: Session) -> None:
    """List the workflows of the App: those in its folder, and those in its code.

    \b
    Example:
      headrace workflows list --app shop.jobs
    """
    async with workflow_verbs(session) as verbs:
        known = await verbs.all()
    if session.json:
        print_json({"workflows": msgspec.to_builtins(known)})
    elif not known and is_terminal():
        print_line("No workflows yet; put a file into the folder workflows/")
    else:
        print_table(
            ("WORKFLOW", "VERSION", "STEPS", "QUEUE", "PARAMS", "DESCRIPTION"),
            [
                (
                    each.id,
                    str(each.version),
                    str(len(each.steps)),
                    each.queue,
                    ", ".join(each.params) or "-",
                    each.description or "-",
                )
                for each in known
            ],
        )


@command(commands, "show")
async def show(session: Session, *, workflow: WorkflowId, version: Version = None) -> None:
    """Show a workflow: its parameters, and its steps in the order in which they can run.

    \b
    Example:
      headrace workflows show prices --app shop.jobs
    """
    async with workflow_verbs(session, workflow) as verbs:
        found = await verbs.find(workflow, version)
    if session.json:
        print_json(msgspec.to_builtins(found))
        return
    print_fields(summary(found))
    print_table(
        ("STEP", "TASK", "AFTER", "FOR EACH", "WHEN"),
        [
            (
                step.id,
                step.task,
                ", ".join(step.depends_on) or "-",
                "-" if step.each is None else str(step.each),
                "-" if step.when is None else str(step.when),
            )
            for step in found.steps
        ],
    )


@command(commands, "check")
async def check(
    session: Session,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files or folders (the folder workflows)."),
    ] = None,
) -> int:
    """Check workflow files against the tasks of the App. Tells every problem with its line.

    \b
    Examples:
      headrace workflows check --app shop.jobs
      headrace workflows check workflows/prices.yaml --app shop.jobs
    """
    app = session.load_app()
    from headrace.workflows.load import check_files  # noqa: PLC0415 - an extra

    checked = check_files(paths or [app.settings.workflows], app.tasks)
    bad = [each for each in checked if each.problems]
    if session.json:
        print_json({"ok": not bad, "files": msgspec.to_builtins(checked)})
    else:
        for each in checked:
            for line in each.problems or [f"{each.file}: ok"]:
                print_line(line)
        if not checked:
            print_line("There are no workflow files.")
    return 1 if bad else 0


@command(commands, "run")
async def run(
    session: Session,
    *,
    workflow: WorkflowId,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help="Parameters: JSON if it parses, else text."),
    ] = None,
    params: Annotated[
        str | None,
        typer.Option("--params", metavar="JSON", help="Parameters as JSON, @file, or - for stdin."),
    ] = None,
    version: Version = None,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="At most one run has it.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the result and print it.")] = False,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Wait no longer than this.")
    ] = None,
) -> None:
    """Run a workflow; the id of the run is the answer.

    \b
    Examples:
      headrace workflows run prices platform=musinsa --app shop.jobs
      headrace workflows run prices --params @params.json --wait --timeout 10m
    """
    limit = None if timeout is None else parse_span("--timeout", timeout)
    given = read_arguments(values or [], params, session.settings.payload_limit)
    async with workflow_verbs(session, workflow) as verbs:
        job = await verbs.run(workflow, given, version=version, key=key)
        if not wait:
            if session.json:
                print_json(job.to_dict())
            else:
                print_line(job.id)
            return
        result = await verbs.result(job.id, limit)
        print_json((await verbs.get(job.id)).to_dict() if session.json else result)


@command(commands, "status")
async def status(session: Session, *, run_id: RunId) -> None:
    """Show a run: the state of each of its steps.

    \b
    Example:
      headrace workflows status 01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11
    """
    async with workflow_verbs(session, tasks=False) as verbs:
        view = await verbs.look(run_id)
        if session.json:
            print_json(msgspec.to_builtins(view))
        else:
            print_run(view, verbs.now())


@command(commands, "retry")
async def retry(
    session: Session,
    *,
    run_id: RunId,
    from_step: Annotated[
        str | None,
        typer.Option("--from", metavar="STEP", help="From this step and all that follow from it."),
    ] = None,
) -> None:
    """Begin a finished run again: what did not complete, or from a step on.

    Steps that are not done anew keep what they have.

    \b
    Example:
      headrace workflows retry 01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11 --from parse
    """
    async with workflow_verbs(session, tasks=False) as verbs:
        steps = await verbs.again(run_id, from_step)
    if session.json:
        print_json({"job_id": run_id, "steps": steps})
    else:
        print_line(f"Run {run_id} goes on with: {', '.join(steps)}")
