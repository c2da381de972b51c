"""Before a Kafka consumer joins: that the brokers answer, and that the topics are there."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any

from headrace.dispatchers.events.adapter import driver_for
from headrace.errors import InvalidInput
from headrace.suggest import did_you_mean

with driver_for("Kafka", "kafka"):
    from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]
    from aiokafka.conn import create_conn  # type: ignore[import-untyped]
    from aiokafka.errors import (  # type: ignore[import-untyped]
        KafkaConnectionError,
        KafkaError,
        SaslAuthenticationFailed,
        UnsupportedSaslMechanismError,
    )

SIGN_IN = ("security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
PROBE_MS = 5_000
DEFAULT_PORT = 9092


async def check_topics(settings: dict[str, Any], topics: Sequence[str]) -> None:
    """Raise an error that says why if the brokers cannot be used, or a topic does not exist.

    A consumer that asks for a topic makes brokers create it, which hides a misspelt name for ever.
    So all topics are listed before.
    """
    admin = AIOKafkaAdminClient(**settings)
    try:
        await admin.start()
        found = set(await admin.list_topics())
    except KafkaConnectionError as error:
        raise ConnectionError(await why_not(settings) or str(error)) from error
    finally:
        await admin.close()
    missing = [topic for topic in topics if topic not in found]
    if missing:
        raise InvalidInput(
            f'the topic "{missing[0]}" does not exist, or may not be seen: create it, or correct '
            f"the option topics; {did_you_mean(missing[0], found)}"
        )


async def why_not(settings: dict[str, Any]) -> str | None:
    """Return why none of the brokers can be connected to. The driver logs that, and raises an error
    without it.
    """
    servers = settings["bootstrap_servers"]
    listed = servers.split(",") if isinstance(servers, str) else list(servers)
    sign_in = {name: settings[name] for name in SIGN_IN}
    told = []
    for server in listed:
        host, port = _address(server.strip())
        try:
            connection = await create_conn(
                host,
                port,
                request_timeout_ms=PROBE_MS,
                ssl_context=settings.get("ssl_context"),
                **sign_in,
            )
        except (OSError, KafkaError) as error:
            told.append(f"{server.strip()}: {_words(error)}")
        else:
            connection.close()
    return "; ".join(told) or None


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() else (server, DEFAULT_PORT)


def _words(error: Exception) -> str:
    words = str(error) or type(error).__name__
    match error:
        case SaslAuthenticationFailed():
            remedy = "; check sasl_username, sasl_password and sasl_mechanism"
        case UnsupportedSaslMechanismError():
            remedy = "; check sasl_mechanism"
        case ssl.SSLCertVerificationError():
            remedy = "; check ssl_ca_file"
        case ssl.SSLError():
            remedy = "; check security_protocol and the TLS files"
        case _:
            remedy = ""
    return f"{words}{remedy}"
