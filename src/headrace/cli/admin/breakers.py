"""`headrace breakers`: list open circuit breakers; open and close them by hand."""

from __future__ import annotations

from headrace.cli.backend import by_cli, time_now
from headrace.cli.command import argument, group, option
from headrace.cli.formatting import parse_span, shown_time, span
from headrace.cli.output import Columns
from headrace.cli.session import CliSession
from headrace.model.limits.breaker import BreakerView

commands = group("List open circuit breakers; open and close them.")

BREAKERS: Columns[BreakerView] = {
    "LANE": lambda each: each.lane,
    "QUEUE": lambda each: each.queue,
    "STATE": lambda each: "one is tried" if each.phase == "trial" else "open",
    "SINCE": lambda each: shown_time(each.since),
    "NEXT TRY": lambda each: "-" if each.phase == "trial" else shown_time(each.until),
    ">TRIED": lambda each: f"{each.trials:,}",
    "CAUSE": lambda each: each.cause,
}


@commands.command("list")
@option("--queue", "NAME", "Only this queue.")
@option("--lane", "LANE", "Only this lane, e.g. task:call_api.")
async def list_breakers(session: CliSession, *, queue: str | None, lane: str | None) -> None:
    """List the circuit breakers that are open, and what has opened them.

    headrace breakers list
    """
    async with session.backend() as backend:
        found = await backend.breakers(queue=queue, lane=lane)
    session.show_list("breakers", found, BREAKERS, empty="No circuit breaker is open.")


@commands.command("open")
@argument("queue", "QUEUE", "The queue.")
@argument("lane", "LANE", "The lane, e.g. task:call_api.")
@option("--for", "SPAN", "How long nothing is started before one job is tried: 30s, 10m, …")
@option("--reason", "TEXT", "Why; others are shown it.")
async def open_breaker(
    session: CliSession, *, queue: str, lane: str, reason: str | None, **given: str | None
) -> None:
    """Open a circuit breaker by hand: nothing more of its lane is started; then one job is tried.

    headrace breakers open default task:call_api --app shop.jobs
    headrace breakers open default task:call_api --for 10m --reason "they deploy"
    """
    span_given = given["for"]
    async with session.backend() as backend:
        opened = await backend.open_breaker(
            queue,
            lane,
            pause=None if span_given is None else parse_span("--for", span_given),
            reason=reason,
            **by_cli(backend),
        )
        left = (opened.until - time_now(backend)).total_seconds()
    session.show(opened, f"The breaker of {queue}/{lane} is open; one is tried in {span(left)}.")


@commands.command("close")
@argument("queue", "QUEUE", "The queue.")
@argument("lane", "LANE", "The lane, e.g. task:call_api.")
async def close_breaker(session: CliSession, *, queue: str, lane: str) -> None:
    """Close a circuit breaker by hand: the jobs of its lane are started again.

    headrace breakers close default task:call_api
    """
    async with session.backend() as backend:
        was_open = await backend.close_breaker(queue, lane)
    said = "is closed" if was_open else "was not open"
    answer = {"queue": queue, "lane": lane, "was_open": was_open}
    session.show(answer, f"The breaker of {queue}/{lane} {said}.")
