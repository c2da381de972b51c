"""Traces by OpenTelemetry: whether they are on, and what can be told without importing any of it.

They are on where the `otel` extra is installed and somebody says where traces go: by the standard
`OTEL_*` variables, or by a tracer provider that the program has set up itself. While they are off,
nothing of OpenTelemetry is imported, and a job runs through no line of code that it would not run
through without this package: whoever enqueues and whoever runs jobs is made another way once, when
an App is opened (`TracedEnqueuer`, `ObservedExecutor`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import MissingDriver

if TYPE_CHECKING:
    from headrace.tracing.tracer import Tracing

MODES = ("auto", "on", "off")
INSTALL = 'install it: pip install "headrace[otel]"'
_API = "opentelemetry.trace"
_shared: Tracing | None = None


def find_tracing(mode: str) -> Tracing | None:
    """Return what makes spans in this process; None while traces are off. `mode` is the setting
    `tracing`. Raises `MissingDriver` if they have to be on and OpenTelemetry is not installed.
    """
    global _shared  # noqa: PLW0603 - one for each process
    if mode == "off" or (mode == "auto" and not (wanted("traces") or has_provider())):
        return None
    if _shared is None:
        try:
            from headrace.tracing.tracer import Tracing  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            if mode == "auto":
                return None  # `set_up` says so, once
            raise MissingDriver(f"traces need {error.name}; {INSTALL}") from None
        _shared = Tracing()
    return _shared


def wanted(signal: str, environment: Mapping[str, str] | None = None) -> bool:
    """Return whether the `OTEL_*` variables say where "traces" or "metrics" go."""
    variables = os.environ if environment is None else environment
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = variables.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip()
    if exporter:
        return exporter != "none"
    own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
    return bool(variables.get(own) or variables.get("OTEL_EXPORTER_OTLP_ENDPOINT"))


def has_provider() -> bool:
    """Return whether this program has set up a tracer provider. Imports nothing."""
    api: Any = sys.modules.get(_API)
    try:
        return api is not None and not isinstance(
            api.get_tracer_provider(), (api.ProxyTracerProvider, api.NoOpTracerProvider)
        )
    except AttributeError:  # it is being imported by another thread
        return False


def current_ids() -> tuple[str, str] | None:
    """Return trace and span that the caller runs in, as text. Imports nothing: where OpenTelemetry
    was not imported there is no span.
    """
    api: Any = sys.modules.get(_API)
    try:
        found = None if api is None else api.get_current_span().get_span_context()
    except AttributeError:  # as above
        return None
    if found is None or not found.is_valid:
        return None
    return format(found.trace_id, "032x"), format(found.span_id, "016x")


def current_headers() -> Mapping[str, str]:
    """Return the W3C headers of the span that the caller runs in; none without one. Imports nothing
    of OpenTelemetry that the program has not imported.
    """
    if current_ids() is None:
        return {}
    from headrace.tracing.tracer import inject  # noqa: PLC0415 - OpenTelemetry is there

    return inject()
