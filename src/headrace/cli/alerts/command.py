"""`headrace alerts`: rules, what fires, silences, and tests of receivers."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from headrace.api_types.alerts import AlertRuleView
from headrace.app import App
from headrace.cli import backend as backends
from headrace.cli.alerts.show import alert_columns, rule_state, show_rule
from headrace.cli.command import argument, flag, group, option
from headrace.cli.errors import notice
from headrace.cli.filters import parts
from headrace.cli.formatting import parse_span, parse_time, shown_time
from headrace.cli.output import Columns, print_json, print_line, print_section
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput
from headrace.model.alerts.rule import KINDS

RULE = argument("name", "RULE", "The name of the rule.")
SUBJECT = option("--subject", "TEXT", "Only for this queue, task, worker, … (default all).")
# Fields of a rule that are lists.
LISTS = ("queues", "tasks", "names")

commands = group("List, add, silence, test and check alerts.")


@commands.command("list")
async def list_rules(session: CliSession) -> None:
    """List rules, and what fires now.

    headrace alerts list
    """
    async with session.backend() as backend:
        rules, found = await backend.alert_rules(), await backend.alerts()
        now = backends.time_now(backend)
    if session.json:
        print_json({"alert_rules": rules, "alerts": found})
        return
    columns: Columns[AlertRuleView] = {
        "RULE": lambda each: each.name,
        "KIND": lambda each: each.kind,
        "SEVERITY": lambda each: each.severity,
        "STATE": rule_state,
        "TO": lambda each: ",".join(each.to),
        "PROBLEM": lambda each: each.problem,
    }
    none = "No rules: nobody is told of anything. See: headrace alerts add --help"
    session.show_list("alert_rules", rules, columns, empty=none)
    active = [each for each in found if each.phase != "ok"]
    print_section(alert_columns(now), active, title="Now:")


@commands.command("show")
@RULE
async def show(session: CliSession, *, name: str) -> None:
    """Show a rule, what it holds for, and what was over in the last day.

    headrace alerts show mail-is-late
    """
    async with session.backend() as backend:
        rule = await backend.alert_rule(name)
        found = [each for each in await backend.alerts() if each.rule == name]
        now = backends.time_now(backend)
    if session.json:
        print_json({"alert_rule": rule, "alerts": found})
        return
    show_rule(rule)
    print_section(alert_columns(now), found, title="Alerts:")


@commands.command("add")
@RULE
@argument("kind", "KIND", f"One of {', '.join(KINDS)}.")
@argument("fields", "[FIELD=VALUE]...", "Fields of the kind, such as above=10m.", nargs=-1)
@option("--to", "A,B", "The receivers, which are destinations.", required=True)
@option("--for", "SPAN", "How long it has to hold before it is told (default 0).", default="0")
@option("--repeat", "SPAN", "Tell it again after this time (default never).")
@option("--severity", "LEVEL", "info, warning or critical.", default="warning")
@option("--summary", "TEXT", "What people read first (default what was found).", default="")
@flag("--replace", "Change it if it exists.")
async def add(
    session: CliSession,
    *,
    name: str,
    kind: str,
    fields: tuple[str, ...],
    to: str,
    repeat: str | None,
    severity: str,
    summary: str,
    replace: bool,
    **more: Any,
) -> None:
    """Add a rule. Every server evaluates it within seconds.

    headrace alerts add mail-is-late queue_age above=10m queues=mail --to ops --for 2m
    headrace alerts add failing failure_rate above=10% window=5m by=task --to ops,mail
    """
    given: dict[str, Any] = dict(map(_pair, fields)) | {
        "for_": more["for"],
        "repeat": repeat,
        "severity": severity,
        "summary": summary,
    }
    async with session.backend() as backend:
        if isinstance(backend, App):
            given |= {"replace": replace, **backends.from_cli(backend)}
        elif not replace and name in {each.name for each in await backend.alert_rules()}:
            raise InvalidInput(f'an alert rule "{name}" exists already; use --replace')
        rule = await backend.put_alert_rule(name, kind, parts([to]), **given)
    if session.json:
        print_json(rule)
        return
    show_rule(rule)


@commands.command("remove")
@RULE
async def remove(session: CliSession, *, name: str) -> None:
    """Remove a rule. Who was told that it fires is told that it is over.

    headrace alerts remove mail-is-late
    """
    async with session.backend() as backend:
        found = [each.origin for each in await backend.alert_rules() if each.name == name]
        await backend.remove_alert_rule(name)
    if found and found[0].startswith(("code", "file")):
        notice(f"note: it is declared in {found[0]} and comes back when a server starts")
    session.show({"name": name, "removed": True}, f"Alert rule {name} is removed.")


@commands.command("silence")
@RULE
@option("--for", "SPAN", "How long nothing is told (default 1h).")
@option("--until", "TIME", "Until when nothing is told.")
@SUBJECT
@option("--reason", "TEXT", "Why, for others.")
async def silence(
    session: CliSession,
    *,
    name: str,
    until: str | None,
    subject: str | None,
    reason: str | None,
    **more: Any,
) -> None:
    """Tell nobody of a rule for a time. What still fires at the end is told then.

    headrace alerts silence mail-is-late --for 2h --reason "provider is down"
    headrace alerts silence worker-lost --subject crane-7
    """
    if more["for"] is not None and until is not None:
        raise InvalidInput("a silence has --for or --until, not both; leave one out")
    end: datetime | None = None if until is None else parse_time("--until", until)
    duration = None if end is not None else parse_span("--for", more["for"] or "1h")
    async with session.backend() as backend:
        by = backends.by_cli(backend)
        made = await backend.silence_alert(
            name, subject=subject, duration=duration, until=end, reason=reason, **by
        )
    about = "" if subject is None else f", subject {subject},"
    session.show(made, f"Alert rule {name}{about} is silent until {shown_time(made.until)}.")


@commands.command("unsilence")
@RULE
@SUBJECT
async def unsilence(session: CliSession, *, name: str, subject: str | None) -> None:
    """End a silence. What still fires is told at once.

    headrace alerts unsilence mail-is-late
    """
    async with session.backend() as backend:
        ended = await backend.unsilence_alert(name, subject=subject)
    words = "is told of again." if ended else "was not silenced."
    session.show(
        {"rule": name, "subject": subject, "silenced": ended}, f"Alert rule {name} {words}"
    )


@commands.command("test")
@argument("receiver", "RECEIVER", "The name of the receiver.")
async def test(session: CliSession, *, receiver: str) -> None:
    """Send a test alert to a receiver and print the id of the job that delivers it.

    headrace alerts test ops
    """
    async with session.backend() as backend:
        job = await backend.test_receiver(receiver)
    session.show(job.to_dict(), job.id)
    if not session.json:
        notice(f"A server or a worker delivers it; see: headrace jobs show {job.id}")


@commands.command("check")
@argument("file", "FILE", "A file of receivers and rules.")
async def check(session: CliSession, *, file: str) -> int:
    """Check a file without storing anything. The exit code is 1 if something is wrong.

    headrace alerts check config/alerts.yaml
    """
    from headrace.alerts.file import read_alerts  # noqa: PLC0415 - needs an extra

    found = read_alerts(Path(file), now=datetime.now().astimezone())
    known = {each.name for each in found.receivers} | set(found.kept_receivers)
    notes = [
        f'rule "{rule.name}" tells {each}, which is not in the file: it has to be a destination'
        for rule in found.rules
        for each in rule.to
        if each not in known
    ]
    if session.json:
        names = {"rules": [each.name for each in found.rules]}
        receivers = [each.name for each in found.receivers]
        print_json({**names, "receivers": receivers, "problems": found.problems, "notes": notes})
        return 1 if found.problems else 0
    for problem in found.problems:
        print_line(problem)
    for note in notes:
        notice(f"note: {note}")
    good = f"{len(found.rules)} rules and {len(found.receivers)} receivers can be used"
    print_line(f"{good}, {len(found.problems)} cannot." if found.problems else f"{good}.")
    return 1 if found.problems else 0


@commands.command("apply")
@option("--config", "FILE", "The file (default config/alerts.yaml).")
async def apply(session: CliSession, *, config: str | None) -> None:
    """Store the receivers and rules of a file, and remove those that it no longer has.

    Servers do this by themselves when they start.

      headrace alerts apply --config config/alerts.yaml
    """
    async with session.store() as app:
        changed = await app.apply_alerts(Path(config or app.settings.alerts))
    if session.json:
        print_json({"changed": changed})
    else:
        print_line(f"Changed: {', '.join(changed)}." if changed else "Nothing has changed.")


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InvalidInput(f"a field is name=value, such as above=10m; got {text!r}")
    if name in LISTS:
        return name, parts([value])
    if name in ("above", "free_below", "least") and value.replace(".", "", 1).isdecimal():
        return name, float(value) if "." in value else int(value)
    return name, value
