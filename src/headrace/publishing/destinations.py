"""Destinations: where published events go. Kept as records; secrets never leave by a view."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from headrace.api_types.publishing import (
    MOST_RETRIES,
    RETRIES,
    SECRET,
    TYPE_PATTERN,
    DestinationKind,
    DestinationView,
)
from headrace.engine.stored_text import redacted
from headrace.errors import InvalidInput, InvalidSetting
from headrace.model.alerts.notice import ALERT_TYPE
from headrace.model.names import check_name
from headrace.publishing.events import wanted_by
from headrace.suggest import unknown

LONGEST_TIMEOUT = 120.0
SECRET_PREFIX = "whsec_"  # noqa: S105 - the mark of one, not one
SECRET_BYTES = (24, 64)
HIDDEN = "***"
# Options whose values are never shown. URLs are shown without passwords and parameters.
SECRET_OPTIONS = frozenset({"password", "sasl_password", "token", "secret_access_key"})

# A name or an IPv4 address, perhaps a port and a path; no user, password or fragment.
_PORT = r"6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}"
WEBHOOK_URL = rf"^https?://[A-Za-z0-9][A-Za-z0-9.\-]{{0,250}}(:({_PORT}))?([/?][!\"$-~]*)?$"

# One address, without a name and without anything that could end a line.
MAIL_ADDRESS = r"^[^\s<>,;@]+@[^\s<>,;@]+$(?!\n)"
# What takes alerts alone, and the address of which is secret.
FOR_ALERTS = frozenset({"slack", "discord", "email"})
SECRET_URLS = frozenset({"slack", "discord"})

_PATTERN = re.compile(TYPE_PATTERN)


class Options(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The options of a destination, by its kind. `{type}` in a name stands for the event's type."""

    timeout: Annotated[float, Meta(gt=0, le=LONGEST_TIMEOUT)] = 15.0


class WebhookOptions(Options, kw_only=True, frozen=True):
    """An HTTP endpoint that follows Standard Webhooks."""

    url: Annotated[str, Meta(pattern=WEBHOOK_URL, max_length=2_000)]


class ChatOptions(Options, kw_only=True, frozen=True):
    """An incoming webhook of Slack or Discord. Its URL is a secret: it lets anyone write there."""

    url: Annotated[str, Meta(pattern=WEBHOOK_URL, max_length=2_000)]


class EmailOptions(Options, kw_only=True, frozen=True):
    """A mail server. `security` is "starttls", "tls" (from the beginning) or "none"; `ca_file` has
    the certificates to trust instead of the system's.
    """

    host: Annotated[str, Meta(min_length=1, max_length=255)]
    sender: Annotated[str, Meta(pattern=MAIL_ADDRESS, max_length=320)]
    to: Annotated[
        list[Annotated[str, Meta(pattern=MAIL_ADDRESS, max_length=320)]],
        Meta(min_length=1, max_length=50),
    ]
    port: Annotated[int, Meta(ge=1, le=65_535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str | None = None
    password: str | None = None
    ca_file: str | None = None


class KafkaOptions(Options, kw_only=True, frozen=True):
    """A topic of Apache Kafka, or of what speaks its protocol. The event's key is the record's."""

    topic: str
    bootstrap_servers: str = "localhost:9092"
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = None
    ssl_ca_file: str | None = None
    ssl_certificate_file: str | None = None
    ssl_key_file: str | None = None


class RabbitmqOptions(Options, kw_only=True, frozen=True):
    """An exchange of RabbitMQ; without one the queue that `routing_key` names."""

    routing_key: str = "{type}"
    exchange: str = ""
    url: str = "amqp://localhost:5672/"


class NatsOptions(Options, kw_only=True, frozen=True):
    """A subject that a stream of NATS JetStream has."""

    subject: str = "{type}"
    servers: str = "nats://localhost:4222"
    user: str | None = None
    password: str | None = None
    token: str | None = None
    credentials_file: str | None = None


class RedisStreamsOptions(Options, kw_only=True, frozen=True):
    """A stream of Redis or Valkey. `max_length` is about how many entries it keeps; None: all."""

    stream: str
    url: str = "redis://localhost:6379/0"
    max_length: Annotated[int, Meta(ge=1, le=2**53)] | None = None


class SqsOptions(Options, kw_only=True, frozen=True):
    """A queue of Amazon SQS. In a FIFO queue the event's key is the message group."""

    queue_url: str
    region: str | None = None
    endpoint_url: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None


OPTIONS: dict[str, type[Options]] = {
    "webhook": WebhookOptions,
    "kafka": KafkaOptions,
    "rabbitmq": RabbitmqOptions,
    "nats": NatsOptions,
    "redis_streams": RedisStreamsOptions,
    "sqs": SqsOptions,
    "slack": ChatOptions,
    "discord": ChatOptions,
    "email": EmailOptions,
}


class Destination(msgspec.Struct, kw_only=True, frozen=True):
    """A destination as it is kept, with its secrets: the newest first, two during a rotation."""

    name: str
    kind: DestinationKind
    options: dict[str, Any]
    types: tuple[str, ...] = ("*",)
    secrets: tuple[str, ...] = ()
    retries: int = RETRIES
    enabled: bool = True
    reason: str | None = None
    origin: str = ""
    created_at: datetime
    changed_at: datetime

    def __repr__(self) -> str:
        return f"<Destination {self.name!r} {self.kind}>"

    def wants(self, event_type: str) -> bool:
        """Return whether events of this type go there now."""
        return self.enabled and wanted_by(self.types, event_type)

    @property
    def typed_options(self) -> Any:
        """The options as the struct of their kind."""
        return msgspec.convert(self.options, OPTIONS[self.kind])

    def view(self) -> DestinationView:
        """Return what people may see of it."""
        return DestinationView(
            name=self.name,
            kind=self.kind,
            types=list(self.types),
            options={name: _shown(name, value, self.kind) for name, value in self.options.items()},
            enabled=self.enabled,
            reason=self.reason,
            retries=self.retries,
            secrets=len(self.secrets),
            origin=self.origin,
            created_at=self.created_at,
            changed_at=self.changed_at,
        )

    def hide(self, text: str) -> str:
        """Return a text, such as an error of a driver, without the secrets of this destination."""
        hidden = [*self.secrets]
        for name, value in self.options.items():
            if isinstance(value, str) and value:
                if name in SECRET_OPTIONS:
                    hidden.append(value)
                elif "://" in value:
                    hidden += _secrets_of_url(value, self.kind)
        for each in sorted(filter(None, hidden), key=len, reverse=True):
            text = text.replace(each, HIDDEN)
        return text


def make_destination(
    name: str,
    kind: str,
    options: dict[str, Any],
    *,
    types: Sequence[str],
    retries: int,
    origin: str,
    now: datetime,
) -> Destination:
    """Return a checked destination without secrets. Errors name the field and the remedy."""
    check_name("destination", name)
    try:
        typed = convert_options(kind, options)
    except InvalidSetting as error:
        raise InvalidSetting(f"destination {name!r}: {error}") from None
    if kind in FOR_ALERTS:
        if any(each not in ("*", ALERT_TYPE) for each in types):
            raise InvalidSetting(
                f"destination {name!r}: {kind} takes alerts alone; leave types out, or use a "
                "webhook for events"
            )
        # Alerts go to those that their rules name: never to all that want everything.
        types = [ALERT_TYPE]
    if not types:
        raise InvalidSetting(f'destination {name!r} wants no event type; use "*" for all')
    for each in types:
        if not isinstance(each, str) or not _PATTERN.fullmatch(each):
            raise InvalidSetting(
                f"destination {name!r}: {each!r} is no event type; use document.processed.v1, "
                "document.* or *"
            )
    if not isinstance(retries, int) or not 0 <= retries <= MOST_RETRIES:
        raise InvalidSetting(
            f"destination {name!r}: retries must be between 0 and {MOST_RETRIES}, got {retries!r}"
        )
    return Destination(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        options=msgspec.to_builtins(typed),
        types=tuple(dict.fromkeys(types)),
        retries=retries,
        origin=origin,
        created_at=now,
        changed_at=now,
    )


def convert_options(kind: str, options: dict[str, Any], *, strict: bool = True) -> Options:
    """Return checked options; with `strict` false, numbers may be text. The error does not repeat
    their values, which may be secret.
    """
    if kind not in OPTIONS:
        raise InvalidSetting(unknown("kind", str(kind), OPTIONS))
    if kind == "email" and not strict and isinstance(options.get("to"), str):
        options = options | {"to": [each.strip() for each in options["to"].split(",")]}
    try:
        return msgspec.convert(options, OPTIONS[kind], strict=strict)
    except msgspec.ValidationError as error:
        known = ", ".join(OPTIONS[kind].__struct_fields__)
        raise InvalidSetting(f"{error}; {kind} takes: {known}") from None


def new_secret() -> str:
    """Return a new secret for the signatures of a webhook."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def check_secret(secret: str) -> str:
    """Check a secret that was given. The error does not repeat it."""
    least, most = SECRET_BYTES
    if not re.fullmatch(SECRET, secret):
        raise InvalidInput(
            f"the secret is not valid; use {SECRET_PREFIX} followed by {least} to {most} bytes in "
            "base64, or leave it out and one is made"
        )
    return secret


def _shown(name: str, value: Any, kind: str) -> Any:
    if value is None or not isinstance(value, str):
        return value
    if kind in SECRET_URLS and name == "url":
        return f"{urlsplit(value).scheme}://{urlsplit(value).netloc}/{HIDDEN}"
    if name in SECRET_OPTIONS:
        return HIDDEN
    if "://" not in value:
        return value
    shown = redacted(value)
    base, mark, _ = shown.partition("?")
    return f"{base}?{HIDDEN}" if mark else shown


def _secrets_of_url(url: str, kind: str) -> list[str]:
    try:
        parts = urlsplit(url)
        path = parts.path.lstrip("/") if kind in SECRET_URLS else None
        return [each for each in (parts.password, parts.query, path) if each]
    except ValueError:
        return []
