"""Bundles, for `headrace doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.app import App
from headrace.cli.formatting import plural
from headrace.model.views import Finding


def bundle_findings(app: App) -> Iterator[Finding]:
    """Return what is to say of the bundles of an open App."""
    for failure in app.bundles.failures:
        yield Finding(
            "error",
            "bundles",
            f"bundle {failure.name} cannot be used: {failure.reason}",
            f"Correct it, or leave it out; see: headrace bundles {failure.name}",
        )
    for loaded in app.bundles:
        bundle, setup = loaded.bundle, loaded.setup
        where = f", tables in {setup.tables_address}" if bundle.tables is not None else ""
        told = f"{bundle.name} {loaded.version or ''}".strip()
        yield Finding("ok", "bundles", f"{told}: {plural(len(loaded.tasks), 'task')}{where}")
        if bundle.tables is None or setup.tables_address.postgres:
            continue
        if not app.settings.url.startswith("sqlite:"):
            variable = f"HEADRACE_{bundle.name.upper().replace('-', '_')}_URL"
            yield Finding(
                "warning",
                "bundles",
                f"the tables of bundle {bundle.name} are in a file, which other machines of this "
                "engine do not see",
                f"Set {variable} to a PostgreSQL that all of them reach.",
            )
