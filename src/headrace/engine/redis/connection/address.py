"""Where a Redis server is: a URL taken apart, and shown again without its password."""

from __future__ import annotations

import binascii
import ssl
from typing import Literal, Self
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import msgspec

from headrace.errors import EngineError, InvalidSetting
from headrace.model.names import check_name

FORMS = (
    "redis://user:password@host:6379/0, rediss://… for TLS, unix:///path.sock?db=0, "
    "redis+sentinel://host:26379,host:26379/master or redis+cluster://host:6379,host:6379"
)
TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password", "sentinel_tls")
OPTIONS = ("namespace", "db", "timeout", *TLS_OPTIONS, *SENTINEL_OPTIONS)

Kind = Literal["server", "sentinel", "cluster"]
Host = tuple[str, int]
_SLOTS = 16_384
_KINDS: dict[str, Kind] = {"": "server", "sentinel": "sentinel", "cluster": "cluster"}
_PORTS = {"server": 6379, "sentinel": 26_379, "cluster": 6379}


class RedisAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A server, a database and our namespace in it. `timeout` is how many seconds it may
    be silent while an answer is awaited. Where sentinels or a cluster tell which server it is,
    `hosts` are those to ask.
    """

    kind: Kind = "server"
    host: str = "127.0.0.1"
    port: int = 6379
    hosts: tuple[Host, ...] = ()
    master: str = ""
    path: str | None = None
    database: int = 0
    username: str | None = None
    password: str | None = None
    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    sentinel_tls: bool = False
    namespace: str = "headrace"
    timeout: float = 10.0

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read a URL, or say which part of it is wrong."""
        try:
            parts = urlsplit(url)
            scheme, _, way = parts.scheme.partition("+")
            kind = _KINDS[way]
            hosts = _hosts(parts, _PORTS[kind])
        except (KeyError, ValueError) as error:
            raise InvalidSetting(f"the Redis URL cannot be read: {error}; use {FORMS}") from None
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        tls = scheme == "rediss"
        _check_options(query, parts.scheme, kind, tls)
        if kind == "server" and len(hosts) > 1:
            raise InvalidSetting(
                "the Redis URL names several hosts; use redis+sentinel:// or redis+cluster://"
            )
        local = scheme == "unix"
        path = [unquote(part) for part in parts.path.split("/") if part]
        master = ""
        if kind == "sentinel":
            if not path:
                raise InvalidSetting(
                    "the Redis URL does not name the master that the sentinels watch; use "
                    "redis+sentinel://host:26379,host:26379/NAME"
                )
            master = path.pop(0)
        database = int(_number("db", query.get("db", "0" if local else "/".join(path) or "0")))
        if kind == "cluster" and database:
            raise InvalidSetting(
                f"the Redis URL has db={database}, but a cluster has no database except 0; leave "
                "it out, and give each store a namespace of its own (?namespace=…)"
            )
        return cls(
            kind=kind,
            host=hosts[0][0],
            port=hosts[0][1],
            hosts=hosts,
            master=master,
            path=unquote(parts.path) if local else None,
            database=database,
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            tls=tls,
            ca_file=query.get("ssl_ca_certs"),
            certificate_file=query.get("ssl_certfile"),
            key_file=query.get("ssl_keyfile"),
            sentinel_username=query.get("sentinel_username"),
            sentinel_password=query.get("sentinel_password"),
            sentinel_tls=_yes("sentinel_tls", query["sentinel_tls"])
            if "sentinel_tls" in query
            else tls,
            namespace=check_name("namespace", query.get("namespace", "headrace")),
            timeout=_number("timeout", query.get("timeout", "10")),
        )

    def __str__(self) -> str:
        """The server, fit for messages."""
        if self.follows:
            hosts = ", ".join(shown(each) for each in self.hosts)
            return f"{self.master} (sentinels {hosts})" if self.master else f"cluster ({hosts})"
        return self.path if self.path is not None else shown((self.host, self.port))

    @property
    def follows(self) -> bool:
        """Whether others tell which server has the store, and it may be another one later."""
        return self.kind != "server"

    def at(self, host: Host) -> Self:
        """One server of those that may have the store."""
        return msgspec.structs.replace(self, kind="server", host=host[0], port=host[1])

    def sentinel(self, host: Host) -> Self:
        """One of the sentinels."""
        return msgspec.structs.replace(
            self.at(host),
            database=0,
            username=self.sentinel_username,
            password=self.sentinel_password,
            tls=self.sentinel_tls,
        )

    @property
    def prefix(self) -> str:
        """What every key begins with: one hash tag, so that all of them are in one place."""
        return f"{{{self.namespace}}}:"

    @property
    def slot(self) -> int:
        """The place of all keys in a cluster, by their hash tag."""
        return binascii.crc_hqx(self.namespace.encode(), 0) % _SLOTS

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """How to talk TLS, if that is asked for. Certificates are always checked."""
        if not self.tls:
            return None
        name, file = "ssl_ca_certs", self.ca_file
        try:
            context = ssl.create_default_context(cafile=file)
            if self.certificate_file is not None:
                name, file = "ssl_certfile", self.certificate_file
                context.load_cert_chain(self.certificate_file, self.key_file)
        except OSError as error:  # also what OpenSSL says of their content
            raise EngineError(
                f"the Redis URL has {name}={file!r}, which cannot be used ({error}). Name a file "
                "in PEM form that this user can read, and for a certificate its key as ssl_keyfile"
            ) from error
        return context

    def greeting(self) -> tuple[tuple[str, ...], ...]:
        """The commands that begin a connection. The first one's answer tells who answers."""
        hello: tuple[str, ...] = ("HELLO", "2")
        if self.password is not None:
            hello += ("AUTH", self.username or "default", self.password)
        hello += ("SETNAME", f"headrace:{self.namespace}")
        # Sentinels have no databases, and a user with few rights may not select one.
        return (hello, ("SELECT", str(self.database))) if self.database else (hello,)


def shown(host: Host) -> str:
    """A host and its port, fit for messages."""
    return f"[{host[0]}]:{host[1]}" if ":" in host[0] else f"{host[0]}:{host[1]}"


def _hosts(parts: SplitResult, port: int) -> tuple[Host, ...]:
    """The hosts that a URL names. One host is taken apart as all URLs are."""
    names = parts.netloc.rpartition("@")[2].split(",")
    found = [urlsplit(f"//{name.strip()}") for name in names]
    return tuple((each.hostname or "127.0.0.1", each.port or port) for each in found)


def _check_options(query: dict[str, str], scheme: str, kind: Kind, tls: bool) -> None:
    for name in query:
        if name not in OPTIONS:
            raise InvalidSetting(
                f"the Redis URL has the unknown option {name!r}; known are {', '.join(OPTIONS)}"
            )
        if name in SENTINEL_OPTIONS and kind != "sentinel":
            raise InvalidSetting(
                f"the Redis URL has {name}, which is for sentinels, but begins with {scheme}://; "
                "use redis+sentinel://host:26379/master"
            )
        if name in TLS_OPTIONS and not tls and query.get("sentinel_tls") != "yes":
            raise InvalidSetting(
                f"the Redis URL has {name}, which is for TLS, but begins with "
                f"{scheme}://; use {'rediss' + scheme[len(scheme.partition('+')[0]) :]}://"
            )
    if "ssl_keyfile" in query and "ssl_certfile" not in query:
        raise InvalidSetting(
            "the Redis URL has ssl_keyfile without ssl_certfile; name the certificate, too"
        )
    if "sentinel_username" in query and "sentinel_password" not in query:
        raise InvalidSetting(
            "the Redis URL has sentinel_username without sentinel_password; give both"
        )


def _yes(name: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise InvalidSetting(f"the Redis URL has {name}={text!r}; use yes or no")
    return text == "yes"


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise InvalidSetting(f"the Redis URL has {name}={text!r}; use a number of 0 or more")
    return number
