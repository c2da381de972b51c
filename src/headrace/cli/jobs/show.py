"""One job, whole."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.cli.backend import shown, time_now
from headrace.cli.formatting import ago, attempt_of, short, shown_time, span, took, zone_name
from headrace.cli.output import Columns, print_fields, print_line, print_section
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry
from headrace.monitor.timeline import TimelineItem, attempts_of, outcome_words, timeline
from headrace.monitor.why import waits_for

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

# Characters of an error, a result or an entry in a table.
SHOWN = 100


async def details(backend: Backend, job_id: str) -> tuple[Job, dict[str, Any]]:
    """Return a job, and the same as `--json` shows it, with its stages and files."""
    job = await backend.get(job_id)
    job, entries = shown(backend, job, await backend.entries(job.id))
    return job, {
        **job.to_dict(),
        "timeline": timeline(job, entries, time_now(backend)),
        "stages": [_stage(entry) for entry in entries if entry.kind == "stage"],
        "entries": [
            {"kind": entry.kind, "name": entry.name, "at": entry.at, "body": _json(entry.body)}
            for entry in entries
            if entry.kind != "stage"
        ],
    }


def print_details(job: Job, found: dict[str, Any], now: datetime) -> None:
    """The same for people."""
    print_fields(_fields(job, now))
    _section("Arguments", _pretty(found["args"]))
    if job.result_json is not None:
        _section("Result", _pretty(found["result"]))
    if job.error is not None:
        _section("Error", f"{job.error_type}: {job.error}" if job.error_type else job.error)
        traceback = _last_traceback(job)
        if traceback is not None:
            _section("Traceback", traceback.rstrip())
    attempts: Columns[AttemptEntry] = {
        "  #": lambda entry: f"  {entry.attempt}",
        "OUTCOME": lambda entry: outcome_words(job, entry),
        "ENDED": lambda entry: ago(entry.ended_at, now),
        "TOOK": lambda entry: took(entry.started_at, entry.ended_at),
        "WORKER": lambda entry: entry.worker,
        "ERROR": lambda entry: (
            short(f"{entry.failure.type}: {entry.failure.message}", SHOWN) if entry.failure else "-"
        ),
    }
    stages: Columns[dict[str, Any]] = {
        "  STAGE": lambda stage: f"  {stage['name']}",
        "ATTEMPT": lambda stage: "-" if stage["attempt"] is None else stage["attempt"],
        "FINISHED": lambda stage: ago(stage["at"], now),
        "TOOK": lambda stage: "-" if stage["seconds"] is None else span(stage["seconds"]),
        "RESULT": lambda stage: short(stage["artifact"] or _compact(stage["result"]), SHOWN),
    }
    entries: Columns[dict[str, Any]] = {
        "  KIND": lambda entry: f"  {entry['kind']}",
        "NAME": lambda entry: entry["name"],
        "WRITTEN": lambda entry: ago(entry["at"], now),
        "CONTENT": lambda entry: short(_compact(entry["body"]), SHOWN),
    }
    first, omitted, last = attempts_of(job)
    print_section(attempts, first, title="Attempts")
    if omitted:
        print_line(f"  … {omitted:,} more attempts")
        print_section(attempts, last)
    print_section(stages, found["stages"], title="Stages")
    print_section(entries, found["entries"], title="Kept")
    events: Columns[TimelineItem] = {
        "  AT": lambda item: f"  {shown_time(item.at, zone=False)}",
        "TOOK": lambda item: "…" if item.goes_on else took(item.at, item.until),
        "WHAT": lambda item: short(item.words, SHOWN),
    }
    print_section(events, found["timeline"], title=f"Timeline ({zone_name(now)})")


def _fields(job: Job, now: datetime) -> list[tuple[str, object]]:
    def when(moment: datetime | None) -> str | None:
        return None if moment is None else f"{shown_time(moment)} ({ago(moment, now)})"

    final = job.status.final
    progress = f"{job.progress:.0f}%" + (f" {job.message}" if job.message else "")
    return [
        ("Job", job.id),
        ("Status", job.status.value),
        ("Cancel", "requested" if job.cancel_requested and not final else None),
        ("Task", job.task),
        ("Queue", job.queue),
        ("Lane", f"{job.lane} (width {job.width})" if job.lane else None),
        ("Priority", job.priority or None),
        ("Key", job.key),
        ("Source", job.source),
        ("Parent", f"{job.parent} (group {job.group})" if job.group else job.parent),
        ("Attempt", attempt_of(job)),
        ("Stage", job.stage),
        ("Progress", progress if job.progress or job.message else None),
        ("Created", when(job.created_at)),
        ("Waits for", waits_for(job.awaits) or None),
        ("Due", when(job.run_at) if not final and job.run_at > now else None),
        ("Parked", "until then, by the rate of its lane or by a hold" if job.parked else None),
        ("Expires", when(job.expires_at)),
        ("Started", when(job.started_at)),
        ("Ended" if final else "Completed", when(job.completed_at)),
        ("Took", took(job.started_at, job.completed_at) if job.completed_at else None),
        ("Worker", job.worker),
        ("Timeout", None if job.timeout is None else span(job.timeout)),
        ("Meta", _compact(job.meta) if job.meta else None),
    ]


def _stage(entry: StoredEntry) -> dict[str, Any]:
    """A finished stage: its result, or the artifact that holds a large one."""
    body = _json(entry.body)
    kept = body if isinstance(body, dict) else {}
    return {
        "name": entry.name,
        "at": entry.at,
        "seconds": kept.get("seconds"),
        "attempt": kept.get("attempt"),
        "tries": kept.get("tries", 1),
        "result": kept.get("sealed") or kept.get("value"),
        "artifact": kept.get("artifact"),
    }


def _last_traceback(job: Job) -> str | None:
    for entry in reversed(job.attempts):
        if entry.failure is not None:
            return entry.failure.traceback
    return None


def _section(title: str, text: str) -> None:
    print_line()
    print_line(title)
    for line in text.splitlines() or [""]:
        print_line(f"  {line}")


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode("utf-8", "replace")


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
