"""The built-in tour: a few small tasks that show what Headrace does.

`headrace up` runs it. Read it as an example of an App; enqueue from it as from your own:
`headrace enqueue tour.hello name=Ada --wait`.
"""

from __future__ import annotations

import asyncio
import time

from headrace.app import App
from headrace.errors import NotRetryable
from headrace.model.durable.context import Context
from headrace.model.job import NewJob
from headrace.model.retry import BUGS, RetryPolicy

app = App()

ORDERS = ("pick", "pack", "label", "ship")


@app.task("tour.hello", queue="tour", never_retry=BUGS)
def hello(name: str = "world") -> str:
    """The simplest task: a plain function, run in a thread."""
    return f"Hello, {name}!"


@app.task("tour.order", queue="tour", never_retry=BUGS, lane="order:{number}")
async def order(number: int, step: str) -> str:
    """A lane of width 1: the steps of one order run one by one, in the order they came."""
    await asyncio.sleep(0.4)
    return f"{step}: done"


@app.task("tour.flaky", queue="tour", never_retry=BUGS, retry=RetryPolicy(retries=3, base=0.5))
async def flaky(ctx: Context) -> str:
    """Fails twice, then succeeds: retries come by themselves."""
    if ctx.attempt <= 2:
        raise ConnectionError(f"the other side hung up (attempt {ctx.attempt})")
    return f"succeeded on attempt {ctx.attempt}"


@app.task("tour.doomed", queue="tour", never_retry=BUGS)
async def doomed() -> None:
    """Cannot succeed, and says so: no retry is wasted on it."""
    raise NotRetryable("this input can never work")


@app.task("tour.stages", queue="tour", never_retry=BUGS)
async def stages(ctx: Context, pages: int = 3) -> dict[str, int]:
    """Named stages: each keeps its result, so that no later attempt does it again."""
    words = await ctx.stage("fetching", _fetch, pages, done="fetched")
    total = await ctx.stage("counting", _count, words, done="counted")
    return {"pages": pages, "words": total}


async def _fetch(pages: int) -> list[str]:
    await asyncio.sleep(0.5)
    return ["the water turns the wheel"] * pages


def _count(texts: list[str]) -> int:
    time.sleep(0.5)
    return sum(len(text.split()) for text in texts)


@app.task("tour.shout", queue="tour", never_retry=BUGS)
async def shout(greetings: list[str]) -> str:
    """The last step of the workflow: it gets what the others returned."""
    return " ".join(greetings).upper()


# A workflow: greet everybody at once, then put the greetings together.
greetings = app.workflow("tour.greetings", queue="tour", params={"names": ["Ada", "Alan", "Grace"]})
_each = greetings.step("greet", hello, {"name": greetings.item}, each=greetings.params.names)
greetings.step("shout", shout, {"greetings": _each.output})


CAST = {
    "hello": "a plain function, run in a thread",
    "order 1-4": "a lane: one at a time, in the order they came",
    "stages": "named stages, each with a result that is kept",
    "flaky": "fails twice, then succeeds",
    "doomed": "fails for good, and no retry is wasted on it",
}


def tour_jobs() -> list[tuple[str, NewJob]]:
    """The jobs of the tour, each with the name that it has there."""
    return [
        ("hello", hello.options(source="cli").job(name="world")),
        *(
            (f"order {number}", order.options(source="cli").job(7, step))
            for number, step in enumerate(ORDERS, 1)
        ),
        ("stages", stages.options(source="cli").job(pages=3)),
        ("flaky", flaky.options(source="cli").job()),
        ("doomed", doomed.options(source="cli").job()),
    ]
