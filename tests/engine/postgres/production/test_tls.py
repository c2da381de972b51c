"""TLS as the parameters of the URL ask for it, with real certificates."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import EngineRefused, EngineUnavailable, InvalidSetting
from tests.conftest import Servers
from tests.engine.postgres.all_verbs import use_an_app
from tests.support.servers import PostgresServer, postgres_binaries
from tests.support.tls import Authority
from tests.support.verbs import enqueue

# `postgres` comes as it likes, `secret` with TLS only, `certified` with a certificate of its own.
ACCESS = """
hostssl all certified 127.0.0.1/32 cert
hostssl all all 127.0.0.1/32 trust
hostnossl all postgres 127.0.0.1/32 trust
"""


class TlsServer(PostgresServer):
    """PostgreSQL with a certificate for `localhost`."""

    def secure(self, files: dict[str, Path]) -> None:
        """Use these files, which become its own: it reads no key that others may read."""
        for name, path in files.items():
            own = self.data / path.name
            shutil.copy(path, own)
            own.chmod(0o600)
            if self.user() is not None:
                nobody = pwd.getpwnam("nobody")
                os.chown(own, nobody.pw_uid, nobody.pw_gid)
            self.settings[name] = str(own)
        self.settings["ssl"] = "on"
        (self.data / "pg_hba.conf").write_text(ACCESS)


def speaks_tls(binaries: Path) -> bool:
    return b"libssl" in (binaries / "postgres").read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def secure(authority: Authority) -> Iterator[TlsServer]:
    able = [path for path in postgres_binaries().values() if speaks_tls(path)]
    if not able:
        pytest.skip("there is no PostgreSQL with TLS: the wheel has none, a Debian package has it")
    server = TlsServer(able[-1], name="tls")
    certificate, key = authority.issue("localhost")
    server.secure(
        {"ssl_cert_file": certificate, "ssl_key_file": key, "ssl_ca_file": authority.file}
    )
    server.start()
    try:
        _make_users(server.url)
        yield server
    finally:
        server.destroy()


def _make_users(url: str) -> None:

    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("secret", "certified"):
            connection.execute(f"CREATE ROLE {name} LOGIN SUPERUSER")


def url_of(
    server: PostgresServer, user: str, host: str = "localhost", /, **parameters: str | Path
) -> str:
    text = "".join(f"&{name}={value}" for name, value in parameters.items())
    place = f"{host}:{server.port}/postgres"
    return f"postgresql://{user}@{place}?schema=s{uuid4().hex[:12]}{text}"


async def is_encrypted(url: str) -> bool:
    engine = PostgresEngine(url, clock=Clock())
    await engine.open()
    [row] = await engine._common.fetch("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    assert await enqueue(engine)
    await engine.close()
    return bool(row[0])


@pytest.mark.parametrize(
    ("mode", "encrypted"),
    [("disable", False), ("prefer", True), ("require", True)],
)
async def test_a_connection_is_as_secure_as_asked(
    secure: TlsServer, mode: str, encrypted: bool
) -> None:
    assert await is_encrypted(url_of(secure, "postgres", sslmode=mode)) is encrypted


async def test_the_certificate_and_its_host_are_checked(
    secure: TlsServer, authority: Authority
) -> None:
    trusted = {"sslrootcert": authority.file}
    assert await is_encrypted(url_of(secure, "secret", sslmode="verify-full", **trusted))
    # An authority is enough for verify-ca: this host is not in the certificate.
    assert await is_encrypted(url_of(secure, "secret", "127.0.0.1", sslmode="verify-ca", **trusted))
    url = url_of(secure, "secret", "127.0.0.1", sslmode="verify-full", **trusted)
    with pytest.raises(EngineRefused, match=r"mismatch.*host name in HEADRACE_URL"):
        await PostgresEngine(url, clock=Clock()).open()


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
async def test_a_certificate_of_another_authority_is_refused(
    secure: TlsServer, folder: Path, mode: str
) -> None:
    other = Authority(folder, name="other")
    url = url_of(secure, "secret", sslmode=mode, sslrootcert=other.file)
    with pytest.raises(EngineRefused, match="Name the authority that signed"):
        await PostgresEngine(url, clock=Clock()).open()


async def test_a_client_certificate_is_shown(secure: TlsServer, authority: Authority) -> None:
    certificate, key = authority.issue("client", name="certified")
    parameters: dict[str, str | Path] = {
        "sslmode": "verify-full",
        "sslrootcert": authority.file,
    }
    bare = url_of(secure, "certified", **parameters)
    with pytest.raises(EngineRefused, match="sslcert and sslkey in HEADRACE_URL"):
        await PostgresEngine(bare, clock=Clock()).open()
    url = url_of(secure, "certified", **parameters, sslcert=certificate, sslkey=key)
    engine = PostgresEngine(url, clock=Clock())
    await engine.open()
    await engine.close()
    await use_an_app(url)


async def test_a_server_that_asks_for_tls_and_one_that_has_none_are_told(
    secure: TlsServer, servers: Servers
) -> None:
    plain = url_of(secure, "secret", sslmode="disable")
    with pytest.raises(EngineRefused, match="use sslmode=verify-full"):
        await PostgresEngine(plain, clock=Clock()).open()
    without = f"{servers.url('postgres')}?sslmode=require"
    with pytest.raises(EngineRefused, match="does not speak TLS"):
        await PostgresEngine(without, clock=Clock()).open()


async def test_of_several_servers_a_wrong_certificate_is_told(
    secure: TlsServer, folder: Path
) -> None:
    other = Authority(folder, name="third")
    url = url_of(secure, "secret", sslmode="verify-full", sslrootcert=other.file)
    both = url.replace("@", f"@localhost:{secure.port},", 1)
    with pytest.raises(EngineRefused, match="Name the authority that signed"):
        await PostgresEngine(both, clock=Clock()).open()
    one_away = url.replace("@", "@localhost:1,", 1)
    with pytest.raises(EngineUnavailable, match="certificate verify failed"):
        await PostgresEngine(one_away, clock=Clock()).open()


async def test_a_file_that_is_not_there_is_named(secure: TlsServer, tmp_path: Path) -> None:
    url = url_of(secure, "secret", sslmode="verify-full", sslrootcert=tmp_path / "nothing.pem")
    with pytest.raises(InvalidSetting, match=r"sslrootcert.*nothing\.pem.*cannot be read"):
        await PostgresEngine(url, clock=Clock()).open()
    (tmp_path / "no.pem").write_text("no certificate")
    url = url_of(secure, "secret", sslmode="verify-full", sslrootcert=tmp_path / "no.pem")
    with pytest.raises(EngineRefused, match="Check the files"):
        await PostgresEngine(url, clock=Clock()).open()
