"""What views lack where jobs are in several stores and one of them does not answer."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model.views import Finding

STORE_AWAY = "engine.store"
"""The kind of these findings."""


def missing_stores(engine: object) -> Sequence[Finding]:
    """Return a finding for each store that does not answer, as far as this process has noticed.
    An engine with one store lacks nothing: it raises while that is away.
    """
    found: Sequence[Finding] = getattr(engine, "missing", ())
    return found
