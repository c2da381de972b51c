"""`headrace workflows`: look at workflows, check their files, run them and follow a run."""

from __future__ import annotations

import click
import msgspec

from headrace.cli import backend as backends
from headrace.cli.command import argument, group
from headrace.cli.enqueue.arguments import read_arguments
from headrace.cli.formatting import parse_span
from headrace.cli.output import is_terminal, print_fields, print_json, print_line, print_table
from headrace.cli.session import Session
from headrace.cli.workflows.show import print_run, summary

commands = group("List, check and run workflows, and follow their runs.")


@commands.command("list")
async def list_workflows(session: Session) -> None:
    """List the workflows of the App: those in its folder, and those in its code.

    \b
    Example:
      headrace workflows list --app shop.jobs
    """
    async with session.backend(needs_app=True) as backend:
        known = await backends.list_workflows(backend)
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


@commands.command("show")
@argument("workflow", metavar="WORKFLOW", help="The id of the workflow.")
@click.option("--version", metavar="VERSION", help="This version instead of the newest.")
async def show(session: Session, *, workflow: str, version: str | None) -> None:
    """Show a workflow: its parameters, and its steps in the order in which they can run.

    \b
    Example:
      headrace workflows show prices --app shop.jobs
    """
    async with session.backend(needs_app=True, task=workflow) as backend:
        found = await backends.get_workflow(backend, workflow, version)
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


@commands.command("check")
@argument("paths", metavar="[FILE]...", nargs=-1, help="Files or folders (default workflows/).")
async def check(session: Session, *, paths: tuple[str, ...]) -> int:
    """Check workflow files against the tasks of the App. Lists every problem with its line.

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


@commands.command("run")
@argument("workflow", metavar="WORKFLOW", help="The id of the workflow.")
@argument(
    "values", metavar="[NAME=VALUE]...", nargs=-1, help="Parameters: JSON if it parses, else text."
)
@click.option("--params", metavar="JSON", help="Parameters as JSON, @file, or - for stdin.")
@click.option("--version", metavar="VERSION", help="This version instead of the newest.")
@click.option("--key", metavar="KEY", help="Idempotency key: at most one run has it.")
@click.option("--wait", is_flag=True, help="Wait for the result and print it.")
@click.option("--timeout", metavar="SPAN", help="Wait at most this long.")
async def run(
    session: Session,
    *,
    workflow: str,
    values: tuple[str, ...],
    params: str | None,
    version: str | None,
    key: str | None,
    wait: bool,
    timeout: str | None,
) -> None:
    """Run a workflow and print the id of the run.

    \b
    Examples:
      headrace workflows run prices platform=musinsa --app shop.jobs
      headrace workflows run prices --params @params.json --wait --timeout 10m
    """
    limit = None if timeout is None else parse_span("--timeout", timeout)
    given = read_arguments(values, params, session.settings.payload_limit)
    async with session.backend(needs_app=True, task=workflow) as backend:
        begun = await backend.run_workflow(workflow, given, version=version, key=key)
        job = await backend.get(begun.job_id)
        if not wait:
            if session.json:
                print_json(job.to_dict())
            else:
                print_line(job.id)
            return
        result = await backend.result(job.id, limit)
        print_json((await backend.get(job.id)).to_dict() if session.json else result)


@commands.command("status")
@argument("run_id", metavar="RUN", help="The id of the run's job.")
async def status(session: Session, *, run_id: str) -> None:
    """Show a run: the state of each of its steps.

    \b
    Example:
      headrace workflows status 01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11
    """
    async with session.backend() as backend:
        view = await backend.follow_run(run_id)
        if session.json:
            print_json(msgspec.to_builtins(view))
        else:
            print_run(view, backends.time_now(backend))


@commands.command("retry")
@argument("run_id", metavar="RUN", help="The id of the run's job.")
@click.option(
    "from_step", "--from", metavar="STEP", help="Repeat this step and those that depend on it."
)
async def retry(session: Session, *, run_id: str, from_step: str | None) -> None:
    """Run a finished run again: what did not complete, or from a step on.

    Steps that are not repeated keep their results.

    \b
    Example:
      headrace workflows retry 01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11 --from parse
    """
    async with session.backend() as backend:
        steps = await backend.retry_run(run_id, from_step)
    if session.json:
        print_json({"job_id": run_id, "steps": steps})
    else:
        print_line(f"Run {run_id} goes on with: {', '.join(steps)}")
