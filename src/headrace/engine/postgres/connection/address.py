"""Where a store is: a URL taken apart, without the secrets in it being shown again."""

from __future__ import annotations

from typing import Literal, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

from headrace.errors import InvalidSetting

DEFAULT_SCHEMA = "headrace"
DEFAULT_PORT = 5432
# What the server cuts off from longer names.
LONGEST_NAME = 63
_FORM = "use postgresql://user:password@host:5432/database"

Pooler = Literal["session", "transaction"]


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The servers, a database and the schema that holds everything of one store.

    `hosts` has what one connects to in turn, if there are several. `pooler` is what is known to be
    in front of them. `wakeups` is where connections for signals lead, if not there.
    """

    dsn: str
    schema: str
    shown: str
    hosts: tuple[tuple[str, int], ...] = ()
    pooler: Pooler | None = None
    wakeups: Address | None = None

    @property
    def quoted_schema(self) -> str:
        """The schema as it is written in SQL."""
        return quoted(self.schema)


def quoted(name: str) -> str:
    """Return the name of a schema or a table as it is written in SQL, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def parse_address(url: str) -> Address:
    """Take a postgresql:// URL apart. `schema`, `pooler` and `listen` are ours; other parameters
    are the driver's.
    """
    try:
        parts = urlsplit(url)
        parameters = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        parts = None
    # Without "//" everything after the scheme would be taken for the name of a database.
    if parts is None or not url.startswith(f"{parts.scheme}://"):
        raise InvalidSetting(f"HEADRACE_URL cannot be read; {_FORM}")
    ours = {"schema": DEFAULT_SCHEMA, "pooler": "", "listen": ""}
    ours |= {name: value for name, value in parameters if name in ours}
    others = [(name, value) for name, value in parameters if name not in ours]
    given = dict(others)
    hosts = parts.netloc.rpartition("@")[2]
    named = given.get("host") or hosts
    address = Address(
        dsn=parts._replace(query=urlencode(others)).geturl(),
        schema=_checked_schema(ours["schema"]),
        shown=f"{named or 'the default host'}{parts.path}",
        # Those before the path count, as they do for the driver.
        hosts=_several(hosts) or ("host" in given and not hosts and _listed(given)) or (),
        pooler=_checked_pooler(ours["pooler"]),
    )
    if not ours["listen"]:
        return address
    servers, slash, database = ours["listen"].partition("/")
    kept = [(name, value) for name, value in others if name not in ("host", "port")]
    login, at, _ = parts.netloc.rpartition("@")
    path = f"/{database}" if slash else parts.path
    return msgspec.structs.replace(
        address,
        wakeups=Address(
            dsn=parts._replace(
                netloc=f"{login}{at}{servers}", path=path, query=urlencode(kept)
            ).geturl(),
            schema=address.schema,
            shown=f"{servers}{path}",
            hosts=_several(servers),
        ),
    )


def _several(text: str) -> tuple[tuple[str, int], ...]:
    """The hosts of a URL, each with its port; empty if it is one, which is left to the driver."""
    if "," not in text:
        return ()
    return tuple(_host(each) for each in text.split(","))


def _listed(given: dict[str, str]) -> tuple[tuple[str, int], ...]:
    """The hosts of the parameter `host`, and the ports of `port`: one for all, or one for each."""
    names = given["host"].split(",")
    if len(names) == 1:
        return ()
    ports = given.get("port", "").split(",")
    if len(ports) == 1:
        ports *= len(names)
    if len(ports) != len(names):
        raise InvalidSetting(
            f"HEADRACE_URL names {len(names)} hosts and {len(ports)} ports; name one port for all "
            "or one for each"
        )
    return tuple((name, _port(port)) for name, port in zip(names, ports, strict=True))


def _host(text: str) -> tuple[str, int]:
    if text.startswith("["):  # an address of IPv6, which has colons of its own
        name, _, rest = text[1:].partition("]")
        return name, _port(rest.removeprefix(":"))
    name, _, port = text.partition(":")
    if not name:
        raise InvalidSetting(f"HEADRACE_URL names a host without a name, {text!r}; {_FORM}")
    return unquote(name), _port(port)


def _port(text: str) -> int:
    if not text:
        return DEFAULT_PORT
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536):
        raise InvalidSetting(f"HEADRACE_URL has the port {text!r}; use a number from 1 to 65535")
    return int(text)


def _checked_pooler(value: str) -> Pooler | None:
    if value not in ("", "session", "transaction"):
        raise InvalidSetting(
            f"pooler {value!r} in HEADRACE_URL is not known; use 'session' or 'transaction', the "
            "pool_mode of the pooler, or leave it out"
        )
    return cast(Pooler, value) if value else None


def _checked_schema(schema: str) -> str:
    """Any name that PostgreSQL takes and people can see. `$user` stands for another name, also in
    quotes.
    """
    size = len(schema.encode("utf-8", "replace"))
    if (
        not 0 < size <= LONGEST_NAME
        or not schema.isprintable()
        or schema.startswith("pg_")
        or schema == "$user"
    ):
        raise InvalidSetting(
            f"schema {schema!r} in HEADRACE_URL is not valid; use 1 to {LONGEST_NAME} bytes of "
            'printable text, not "$user" and not starting with "pg_"'
        )
    return schema
