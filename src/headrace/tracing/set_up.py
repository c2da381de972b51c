"""The OpenTelemetry SDK for processes of Headrace's own, by the standard `OTEL_*` variables.

A program that has set up a tracer provider itself, and one that `opentelemetry-instrument` starts,
keeps what it has.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidSetting, MissingDriver
from headrace.tracing import INSTALL, find_tracing, has_provider, wanted
from headrace.tracing.carrier import FIELDS, checked
from headrace.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

log = logging.getLogger("headrace.tracing")

# What is not sent yet when a process ends is given so long.
FLUSH_SECONDS = 5.0
_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


@contextlib.contextmanager
def exporting(mode: str, service: str) -> Iterator[None]:
    """Send the spans of this process to where the variables say, and the last ones at the end.
    `service` is its name where `OTEL_SERVICE_NAME` says no other.
    """
    provider = set_up(mode, service)
    try:
        yield
    finally:
        if provider is not None:
            _send_last(provider)


def _send_last(provider: Any) -> None:
    """Send what is left. A collector that hangs must not hold up the end of the process, and the
    SDK waits for it as long as its exporter does: so this is done by a thread that may be left.
    """
    sending = threading.Thread(target=provider.force_flush, name="headrace-last-spans", daemon=True)
    sending.start()
    sending.join(FLUSH_SECONDS)
    if sending.is_alive():
        log.warning("The last spans were not sent within %g s: they are lost", FLUSH_SECONDS)


@contextlib.contextmanager
def command_span(mode: str, name: str) -> Iterator[None]:
    """Make a span while a command runs, if traces are on: below the one that `TRACEPARENT` names in
    its environment, as other tools that start programs have it.
    """
    tracing = find_tracing(mode)
    if tracing is None:
        yield
        return
    above = checked({each: os.environ.get(each.upper()) for each in FIELDS})
    with tracing.commanding(name, above):
        yield


def set_up(mode: str, service: str) -> Any:
    """Set up a tracer provider for this process, and return it; None if nothing had to be done."""
    if mode == "off" or not wanted("traces"):
        return None
    if find_tracing(mode) is None:
        log.warning("OTEL_* variables ask for traces, but OpenTelemetry is missing; %s", INSTALL)
        return None
    if has_provider():
        return None
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDriver(f"traces need {error.name}; {INSTALL}") from None
    # At the exit of the process the SDK would wait for the collector once more.
    provider = TracerProvider(resource=resource(service), shutdown_on_exit=False)
    for exporter in exporters("traces"):
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


def resource(service: str) -> Resource:
    """Return what is said of this process with all that it sends."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra

    about: dict[str, Any] = {"service.version": __version__, "process.pid": os.getpid()}
    named = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if not named and not os.environ.get("OTEL_SERVICE_NAME"):
        about["service.name"] = service
    return Resource.create(about)


def exporters(signal: str) -> Iterator[Any]:
    """Make the exporters of "traces" or "metrics" that the variables name; otlp by default."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom needed

    names = os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip() or "otlp"
    for name in (each.strip() for each in names.split(",")):
        if name in ("", "none"):
            continue
        known = _protocol(signal) if name == "otlp" else name
        found = list(entry_points(group=f"opentelemetry_{signal}_exporter", name=known))
        if not found:
            raise InvalidSetting(
                f"OTEL_{signal.upper()}_EXPORTER asks for {name!r} ({known}), which no installed "
                f"package brings; install opentelemetry-exporter-{known.replace('_', '-')}, or "
                "leave it out"
            )
        yield found[0].load()()


def _protocol(signal: str) -> str:
    for variable in (
        f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    ):
        if protocol := os.environ.get(variable, "").strip():
            if protocol not in _PROTOCOLS:
                raise InvalidSetting(
                    f"{variable} is {protocol!r}; use one of {', '.join(_PROTOCOLS)}"
                )
            return _PROTOCOLS[protocol]
    return _PROTOCOLS["http/protobuf"]
