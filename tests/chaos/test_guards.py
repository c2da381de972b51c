"""Real runs with a guard switched off: the judge has to catch each of them."""

from __future__ import annotations

import pytest
from chaos.driver import Result, run
from chaos.faults import registry
from chaos.options import Options

from tests.chaos.taken_over import FreezeUntilTakenOver

NOTHING = ("nothing",)


# A run without a guard does harm only if the moment is right. On a busy machine one may miss it.
SEEDS = (5, 6, 7, 8)


async def without(faults: tuple[str, ...], *, engine: str, seed: int) -> Result:
    """A short run of programs that lack a guard."""
    return await run(
        Options(
            engine=engine,
            seconds=3.0,
            seed=seed,
            faults=faults or NOTHING,
            lease=2.0,
            workers=2,
            # Room for what is taken over, however many long attempts are under way.
            slots=64,
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
        ("token", (FreezeUntilTakenOver.name,), "sqlite", {"stale outcome"}),
        ("refusal", (FreezeUntilTakenOver.name,), "sqlite", {"recorded twice"}),
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
    monkeypatch.setenv("CHAOS_GUARD", guard)
    monkeypatch.setitem(registry.FAULTS, FreezeUntilTakenOver.name, FreezeUntilTakenOver)
    seen = []
    for seed in SEEDS:
        result = await without(faults, engine=engine, seed=seed)
        seen.append(result.judgement.violations)
        if rules <= set(result.judgement.by_rule):
            return
    pytest.fail(f"not caught in {len(SEEDS)} runs: {seen}")
