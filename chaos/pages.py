"""Tables of the documentation, made from runs that were kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NOTHING = "No run has been kept yet."
Runs = dict[str, dict[str, Any]]

# What is promised, in the order of the page: the rule, and how people read it.
PROMISES = {
    "lost": "acknowledged jobs lost",
    "not ended": "jobs that did not end",
    "not completed": "good jobs that did not complete",
    "token run twice": "(job, token) run twice",
    "stale outcome": "stale outcomes",
    "foreign result": "results of another job",
    "recorded twice": "outcomes recorded twice",
    "stage run again": "kept stages run again",
    "lane overlap": "lane overlaps by valid token",
    "lane order": "lanes out of order",
    "key doubled": "keys with two jobs",
    "void": "acknowledged into a deleted file",
    "left running": "processes of killed workers left running",
    "audit": "findings of the engine's audit",
    "late recovery": "recoveries that were late",
    "worker not back": "workers that did not come back",
    "not stopped": "workers that did not stop",
}


def sections(runs: Runs) -> dict[str, str]:
    """The parts of the page, by the name of their marks."""
    strict = {name: run for name, run in runs.items() if not run["variant"]}
    return {
        "promises": promises(strict) if strict else NOTHING,
        "faults": faults(strict) if strict else NOTHING,
        "losses": losses(runs),
        "runs": provenance(runs) if runs else NOTHING,
    }


def promises(runs: Runs) -> str:
    """What each run did, and how often each promise was broken."""
    rows = [
        ["minutes", *(f"{run['seconds'] / 60:.1f}" for run in runs.values())],
        ["faults", *(f"{run['fault_count']:,}" for run in runs.values())],
        ["jobs acknowledged", *(f"{run['counts']['acknowledged']:,}" for run in runs.values())],
        ["attempts begun", *(f"{run['counts']['begun']:,}" for run in runs.values())],
        [
            "late outcomes refused",
            *(f"{run['counts']['refused outcomes']:,}" for run in runs.values()),
        ],
    ]
    rows += [
        [f"**{shown}**", *(str(run["rules"].get(rule, 0)) for run in runs.values())]
        for rule, shown in PROMISES.items()
    ]
    rows.append(
        [
            "first job after an outage, p50 / p99",
            *(pair(run["recovery"]["p50"], run["recovery"]["p99"]) for run in runs.values()),
        ]
    )
    rows.append(
        [
            "take-over from a killed worker, p50 / p99",
            *(pair(run["take_over"]["p50"], run["take_over"]["p99"]) for run in runs.values()),
        ]
    )
    return table(["", *runs], rows)


def faults(runs: Runs) -> str:
    """How often each fault happened, and how long it took until the first job was completed."""
    cells = {
        (row["name"], name): f"{row['count']:,}: {pair(row['first_p50'], row['first_p99'])}"
        for name, run in runs.items()
        for row in run["faults"]
    }
    kinds = sorted({kind for kind, _ in cells})
    rows = [[kind, *(cells.get((kind, name), "") for name in runs)] for kind in kinds]
    return table(["fault", *runs], rows)


def losses(runs: Runs) -> str:
    """What was lost where the documentation says that it may be."""
    rows = [
        [
            what,
            f"{found['times']:,}",
            f"{run['counts']['acknowledged']:,}" if what == "all" else "",
            f"{found['lost']:,}",
            f"{found['most']:,}",
        ]
        for run in runs.values()
        for what, found in run["allowed"].items()
    ]
    heads = ["what happened", "times", "jobs acknowledged", "jobs lost", "most at once"]
    return table(heads, rows) if rows else NOTHING


def provenance(runs: Runs) -> str:
    """Where the figures come from."""
    lines = []
    for name, run in runs.items():
        facts = ", ".join(f"{key} {value}" for key, value in run["machine"].items())
        lines.append(f"- {name}: {facts}; `{run['command']}`")
    return "\n".join(lines)


def pair(first: float | None, second: float | None) -> str:
    """Two figures in seconds."""
    return " / ".join("-" if each is None else f"{each:.2f}" for each in (first, second)) + " s"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
