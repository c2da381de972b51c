"""Settings: from code, then the environment, then `headrace.toml`, then defaults."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from headrace.errors import InvalidSetting
from headrace.installed_bundles import bundle_names, bundle_of, older_variables
from headrace.loops.sockets import parse_address
from headrace.suggest import unknown

FILE = "headrace.toml"
MEBIBYTE = 1_048_576
MOST_SECONDS = 100 * 365 * 86_400.0
"""A longer span, added to a time or taken from it, leaves what stores and calendars know."""
LISTS = ("queues", "bundles")
"""Settings that are several names, `a,b` in text."""
TABLES = ("stores",)
"""Settings that are several addresses with names, `a=b,c=d` in text."""
ADDRESSES = ("url", "artifacts", "api_url")
"""Settings that may have a password in them."""
SECRETS = frozenset({"api_key", "encryption_keys"})
"""Settings whose value is never shown."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. `HEADRACE_LEASE_SECONDS` sets `lease_seconds`, and so on.

    `stores` are the URLs of other stores by the queues that are in them: names, or the beginning of
    names and a `*`. `queues` empty means all. `bundles` names installed ones, each of which has
    settings of its own.
    `connection_retries` None means: keep trying for ever.
    """

    url: str = "sqlite:///headrace.db"
    stores: dict[str, str] = {}
    app: str | None = None
    bundles: tuple[str, ...] = ()
    migrate: Literal["auto", "never"] = "auto"
    lease_seconds: float = 30.0
    grace_seconds: float = 30.0
    max_workers: int = 10
    queues: tuple[str, ...] = ()
    worker_name: str | None = None
    schedules_owner: str | None = None
    connection_retries: int | None = None
    artifacts: str = "headrace-data/artifacts"
    workflows: str = "workflows"
    alerts: str = "config/alerts.yaml"
    host: str = "127.0.0.1"
    port: int = 3989
    probes: str | None = None
    payload_limit: int = MEBIBYTE
    history_seconds: float = 7 * 86_400.0
    history_count: int | None = None
    block_seconds: float = 1.0
    log_format: Literal["text", "json"] = "text"
    tracing: Literal["auto", "on", "off"] = "auto"
    allow_private_webhooks: bool = False
    encryption_keys: str | None = None
    encryption_key_file: str | None = None
    encrypt_all: bool = False
    show_sealed: bool = False
    api_url: str | None = None
    api_key: str | None = None

    def __post_init__(self) -> None:
        for field, least in _LEAST.items():
            value = getattr(self, field)
            if value is not None and not value >= least:
                raise InvalidSetting(f"{field} must be at least {least}, got {value}")
            if field.endswith("_seconds") and value > MOST_SECONDS:
                raise InvalidSetting(
                    f"{field} must be at most {MOST_SECONDS:.0f} (100 years), got {value}"
                )
        if not 0 <= self.port <= 65_535:
            raise InvalidSetting(f"port must be between 0 and 65535, got {self.port}")
        if self.probes is not None:
            parse_address("probes", self.probes)

    def __repr__(self) -> str:
        shown = (
            f"{name}={'***' if name in SECRETS and value else _shown(name, value)}"
            for name, value in msgspec.structs.asdict(self).items()
        )
        return f"Settings({', '.join(shown)})"


def _shown(name: str, value: Any) -> str:
    """Return how a setting is shown: of an address with a login or with options only its scheme."""
    if name in TABLES:
        return repr({each: _without_login(url) for each, url in value.items()})
    return repr(_without_login(value) if name in ADDRESSES else value)


def _without_login(url: str | None) -> str | None:
    if url is None or not {"@", "?", ";"} & set(url):
        return url
    scheme, colon, _ = url.partition("://")
    return f"{scheme}://***" if colon and scheme.isalnum() else "***"


_LEAST: dict[str, float] = {
    "lease_seconds": 1,
    "grace_seconds": 0,
    "max_workers": 1,
    "connection_retries": 0,
    "payload_limit": 1,
    "history_seconds": 0,
    "history_count": 0,
    "block_seconds": 0.01,
}

_FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}
# Names that the five systems used, and which mean the same. The first that is set counts.
_ALIASES = {"queues": ("WORKER_QUEUES", "WORKER_PLATFORMS"), "api_url": ("API_URL",)}
# What Kubernetes puts into the environment for a Service: HEADRACE_SERVICE_HOST for one that is
# called headrace, HEADRACE_API_PORT_3989_TCP_ADDR for headrace-api.
_OF_SERVICE = re.compile(
    r"HEADRACE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?"
    r"|PORT_\d+_(?:TCP|UDP|SCTP)(?:_PROTO|_PORT|_ADDR)?)"
)
_NEXT_NAME = re.compile(r",\s*(?=[^,=\s]+=\w+:)")
_LINK_OF_SERVICE = re.compile(r"(?:tcp|udp|sctp)://\S+", re.IGNORECASE)


def load(
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    **given: Any,
) -> Settings:
    """Read the settings. What is given in code wins; None in code means "not given"."""
    values = _from_file((folder or Path.cwd()) / FILE)
    variables = os.environ if environment is None else environment
    values |= _from_environment(variables)
    for name, value in given.items():
        if name not in _FIELDS:
            raise InvalidSetting(unknown("setting", name, _FIELDS))
        if value is not None:
            values[name] = _convert(name, value, name, strict=True)
    for variable, name in older_variables(values.get("bundles", ())).items():
        if name in _FIELDS and name not in values and variables.get(variable):
            values[name] = _convert(name, variables[variable], variable)
    return Settings(**values)


def read_file(path: Path) -> dict[str, Any]:
    """Return what a settings file holds; nothing if there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"{path} is not valid TOML: {error}") from None


def _from_file(path: Path) -> dict[str, Any]:
    values = {}
    for name, value in read_file(path).items():
        if name not in _FIELDS:
            if isinstance(value, dict) and name in bundle_names():
                continue  # the settings of a bundle, read when it is loaded
            raise InvalidSetting(f"{path}: {unknown('setting', name, _FIELDS)}")
        values[name] = _convert(name, value, f"{name} in {path}", strict=True)
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for field, aliases in _ALIASES.items():
        for alias in aliases:
            if environment.get(alias):
                values[field] = _convert(field, environment[alias], alias)
                break
    known = {f"HEADRACE_{name.upper()}": name for name in _FIELDS}
    for name, text in environment.items():
        if not name.startswith("HEADRACE_") or name.startswith("HEADRACE_TEST_"):
            continue
        if is_of_kubernetes(name, text, known):
            continue
        if name not in known:
            if bundle_of(name) is not None:
                continue  # checked when that bundle is loaded
            raise InvalidSetting(unknown("environment variable", name, known))
        if text != "":
            values[known[name]] = _convert(known[name], text, name)
    return values


def is_of_kubernetes(variable: str, text: str, known: Container[str]) -> bool:
    """Whether Kubernetes sets this variable by itself, for a Service whose name begins with
    `headrace`, and it is none of the `known` ones that people set. `HEADRACE_PORT=tcp://…` is one,
    `HEADRACE_PORT=3989` is a setting.
    """
    if variable.endswith("_PORT") and _LINK_OF_SERVICE.fullmatch(text):
        return True
    return variable not in known and _OF_SERVICE.fullmatch(variable) is not None


def _convert(field: str, value: Any, shown: str, *, strict: bool = False) -> Any:
    """Turn text from the environment, or a TOML value, into what the field holds."""
    if field in LISTS and isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if field in TABLES and isinstance(value, str):
        value = _table(value, shown)
    try:
        return msgspec.convert(value, _FIELDS[field].type, strict=strict)
    except msgspec.ValidationError as error:
        secret = field in SECRETS or field in TABLES
        given = "a value" if secret else f"the value {value!r}"
        raise InvalidSetting(f"{shown} has {given} that cannot be used: {error}") from None


def _table(text: str, shown: str) -> dict[str, str]:
    """Read `emails=postgresql://…, media-*=redis://…`: a comma may be part of an address."""
    found: dict[str, str] = {}
    for part in _NEXT_NAME.split(text):
        name, equals, value = part.strip().strip(",").partition("=")
        # Without the name of a queue, what stands before the first "=" is an address.
        if not equals or not name.strip() or "/" in name or not value.strip():
            raise InvalidSetting(
                f"{shown} has a part without a queue and an address; write "
                "queue=address, such as emails=postgresql://host/db, media-*=redis://host"
            )
        if name.strip() in found:
            raise InvalidSetting(f"{shown} names {name.strip()!r} twice; leave one of them out")
        found[name.strip()] = value.strip()
    return found
