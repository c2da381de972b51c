"""`headrace rates`: list and set rates, hold lanes and queues."""

from __future__ import annotations

from headrace.cli.backend import by_cli
from headrace.cli.command import argument, group, option, together
from headrace.cli.formatting import parse_span, parse_time, shown_time
from headrace.cli.output import Columns, print_line
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput
from headrace.model.limits.rate import RateView, as_rate
from headrace.model.names import check_name
from headrace.monitor.words import held_words

commands = group("List rates and set them; hold lanes and queues.")


def _set_by(rate: RateView) -> str:
    if rate.rate is None:
        return "-"
    return "operator" if rate.by_operator else "jobs"


RATES: Columns[RateView] = {
    "LANE": lambda each: each.lane or "(the queue)",
    "QUEUE": lambda each: each.queue,
    "RATE": lambda each: "-" if each.rate is None else each.rate.text,
    ">BURST": lambda each: "-" if each.rate is None else f"{each.rate.burst:,}",
    "SET BY": _set_by,
    ">WAITING": lambda each: "many" if each.waiting is None else f"{each.waiting:,}",
    "NEXT START": lambda each: "now" if each.next_at is None else shown_time(each.next_at),
    "HELD UNTIL": lambda each: "-" if each.held_until is None else shown_time(each.held_until),
}
KEY = together(
    argument("queue", "QUEUE", "The queue."),
    option("--lane", "LANE", "The lane, e.g. host:example.com; without it, the queue itself."),
)


@commands.command("list")
@option("--queue", "NAME", "Only this queue.")
@option("--lane", "LANE", "Only this lane, e.g. host:example.com.")
@option("--limit -n", "N", "Show at most this many.", type=int, default=100)
async def list_rates(
    session: CliSession, *, queue: str | None, lane: str | None, limit: int
) -> None:
    """List rates: how many jobs wait, when the next may start, and what is held.

    headrace rates list --queue crawl
    """
    if not 1 <= limit <= 1_000:
        raise InvalidInput(f"--limit must be between 1 and 1000, got {limit}")
    async with session.backend() as backend:
        found = await backend.rates(
            queue=None if queue is None else check_name("queue", queue), lane=lane, limit=limit
        )
    empty = "No lane or queue has a rate or is held; set one with: headrace rates set"
    session.show_list("rates", found, RATES, empty=empty)
    if session.json:
        return
    for each in found:
        if each.held_by or each.held_reason:
            print_line(f"{named(each)} is {held_words(each)}")


@commands.command("set")
@KEY
@option("--rate", "RATE", "Starts in a time: 100/s, 10/m, 500/h, 1/5s.", required=True)
@option("--burst", "N", "How many may start at once; else what 0.2 s hold.", type=int)
async def set_rate(
    session: CliSession, *, queue: str, lane: str | None, rate: str, burst: int | None
) -> None:
    """Set the rate of a lane or a queue. It counts whatever jobs say, until it is removed.

    Jobs that wait already are counted by it, too.

      headrace rates set crawl --lane host:example.com --rate 10/m --burst 3
      headrace rates set mail --rate 100/s
    """
    wanted = as_rate(rate, burst)
    async with session.backend() as backend:
        found = await backend.set_rate(queue, wanted, lane=lane or "")
    at_once = f", up to {wanted.burst:,} at once" if wanted.burst > 1 else ""
    session.show(found, f"{named(found)} starts {wanted.words}{at_once}.")


@commands.command("remove")
@KEY
async def remove_rate(session: CliSession, *, queue: str, lane: str | None) -> None:
    """Remove a rate that was set: what jobs say counts again, if they do.

    headrace rates remove crawl --lane host:example.com
    """
    async with session.backend() as backend:
        found = await backend.remove_rate(queue, lane=lane or "")
    left = "no rate" if found.rate is None else f"the rate of its jobs: {found.rate.words}"
    session.show(found, f"{named(found)} has {left}.")


@commands.command("hold")
@KEY
@option("--for", "SPAN", "Start nothing for this time: 30s, 10m, 2h, …", default=None)
@option("--until", "TIME", "Start nothing before this time, in ISO 8601.")
@option("--reason", "TEXT", "Why; others are shown it.")
async def hold(
    session: CliSession,
    *,
    queue: str,
    lane: str | None,
    until: str | None,
    reason: str | None,
    **given: str | None,
) -> None:
    """Hold a lane or a queue: nothing of it starts before a time. Running jobs go on.

    It ends by itself, also while no worker runs. A second hold replaces the first.

      headrace rates hold crawl --lane host:example.com --for 10m --reason "they asked us to"
      headrace rates hold mail --until 2030-01-31T08:30:00Z
    """
    span_given = given["for"]
    if (span_given is None) == (until is None):
        raise InvalidInput("a hold has an end: give either --for 10m or --until with a time")
    async with session.backend() as backend:
        found = await backend.hold(
            queue,
            lane=lane or "",
            until=None if until is None else parse_time("--until", until),
            duration=None if span_given is None else parse_span("--for", span_given),
            reason=reason,
            **by_cli(backend),
        )
    end = "" if found.held_until is None else f" until {shown_time(found.held_until)}"
    session.show(found, f"{named(found)} is held{end}.")


@commands.command("release")
@KEY
async def release(session: CliSession, *, queue: str, lane: str | None) -> None:
    """End a hold, whoever asked for it.

    headrace rates release crawl --lane host:example.com
    """
    async with session.backend() as backend:
        found = await backend.release_hold(queue, lane=lane or "")
    session.show(found, f"{named(found)} is not held.")


def named(rate: RateView) -> str:
    """E.g. "Lane host:example.com of queue crawl"."""
    return f"Lane {rate.lane} of queue {rate.queue}" if rate.lane else f"Queue {rate.queue}"
