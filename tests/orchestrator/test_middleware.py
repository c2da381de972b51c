"""Middleware: layers around a handler."""

from __future__ import annotations

from typing import Any

from headrace.orchestrator.middleware import chain_of
from tests.orchestrator.jobs import a_claimed_job


async def test_a_chain_calls_its_layers_from_the_outside_in() -> None:
    seen: list[str] = []

    def layer(name: str) -> Any:
        async def run(call_next: Any, job: Any, ctx: Any) -> Any:
            seen.append(name)
            return await call_next()

        return run

    async def handler() -> int:
        return 1

    context: Any = None
    assert chain_of([]) is None
    chain = chain_of([layer("a"), layer("b"), layer("c")])
    assert chain is not None
    assert await chain(handler, a_claimed_job(), context) == 1
    assert seen == ["a", "b", "c"]
