"""Real runs with a guard switched off: the judge has to catch each of them."""

from __future__ import annotations

import pytest
from chaos.driver import Result, run
from chaos.options import Options

NOTHING = ("nothing",)


async def without(
    guard: str, monkeypatch: pytest.MonkeyPatch, *faults: str, engine: str = "sqlite"
) -> Result:
    """A short run of programs that lack a guard."""
    monkeypatch.setenv("CHAOS_GUARD", guard)
    return await run(
        Options(
            engine=engine,
            seconds=3.0,
            seed=5,
            faults=faults or NOTHING,
            lease=2.0,
            workers=2,
            patience=7.0,
            stop_limit=4.0,
            quiet_limit=5.0,
            burst=1,
            program="tests.chaos.unguarded_worker",
            producer="tests.chaos.unguarded_producer",
        )
    )


@pytest.mark.parametrize(
    ("guard", "faults", "engine", "rules"),
    [
        ("lane", (), "sqlite", {"lane overlap"}),
        ("order", (), "sqlite", {"lane order"}),
        ("stages", (), "sqlite", {"stage run again"}),
        ("reconcile", (), "sqlite", {"token run twice"}),
        ("token", ("freeze worker",), "sqlite", {"stale outcome"}),
        ("refusal", ("freeze worker",), "sqlite", {"recorded twice"}),
        ("acknowledge", ("kill server",), "redis", {"lost"}),
        ("acknowledge", ("file deleted",), "sqlite", {"void"}),
        ("haste", ("kill server",), "redis", {"late recovery", "worker not back"}),
        ("family", ("kill worker",), "sqlite", {"left running"}),
        ("stop", ("stop worker",), "sqlite", {"not stopped"}),
    ],
)
async def test_a_run_without_a_guard_is_caught(
    monkeypatch: pytest.MonkeyPatch,
    guard: str,
    faults: tuple[str, ...],
    engine: str,
    rules: set[str],
) -> None:
    result = await without(guard, monkeypatch, *faults, engine=engine)
    assert rules <= set(result.judgement.by_rule), result.judgement.violations
