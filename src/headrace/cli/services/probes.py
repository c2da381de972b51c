"""The option by which a process serves its probes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from headrace.cli.command import option
from headrace.config import Settings
from headrace.loops.sockets import parse_address

if TYPE_CHECKING:
    from headrace.probes import Probe

probes_option = option(
    "--probes", "[HOST:]PORT", "Serve /healthz, /readyz and /metrics there (default off)."
)


@contextlib.asynccontextmanager
async def serving_probes(settings: Settings, make: Callable[[], Probe]) -> AsyncIterator[None]:
    """Serve the probe that `make` returns, if the settings say where. It is called only then, so
    that others need not import what it needs.
    """
    if settings.probes is None or parse_address("probes", settings.probes) is None:
        yield
        return
    from headrace.probes import probes_on  # noqa: PLC0415 - most processes have none

    async with probes_on(settings.probes, make()):
        yield
