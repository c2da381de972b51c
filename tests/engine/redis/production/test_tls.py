"""rediss:// before servers that speak TLS themselves, alone, with a sentinel and in a cluster."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.clock import Clock
from headrace.engine.redis.engine import RedisEngine
from headrace.errors import EngineError, EngineUnavailable
from headrace.model.worker import WorkerStats
from tests.engine.redis.production.groups import MASTER, Group
from tests.engine.redis.production.nodes import ClusterNode, Node, Sentinel, started, wait_for
from tests.support.servers import free_port
from tests.support.tls import Authority
from tests.support.verbs import LEASE, a_worker, claim, complete, enqueue

HOST = "127.0.0.1"
# What only a server says that can speak TLS.
_TLS = b"No tls-cert-file configured"


def with_tls() -> dict[str, Path]:
    """Servers of this machine that were built with TLS, by name. That of the wheel was not."""
    found = [
        Path(path) for name in ("valkey-server", "redis-server") if (path := shutil.which(name))
    ]
    return {
        path.name: path for path in found if b"No tls-cert-file configured" in path.read_bytes()
    }


class TlsGroup(Group):
    """A server, one that wants certificates of clients, a sentinel, and a cluster of one node."""

    def __init__(self, binary: Path, folder: Path) -> None:
        super().__init__()
        self.authority = Authority(folder)
        certificate, key = self.authority.issue(HOST)
        self.client = self.authority.issue("me", name="client")
        self.ports = [free_port() for _ in range(4)]
        files = (
            ("tls-cert-file", str(certificate)),
            ("tls-key-file", str(key)),
            ("tls-ca-cert-file", str(self.authority.file)),
        )

        def settings(n: int, clients: str = "no", **others: str) -> list[tuple[str, str]]:
            own = [("tls-port", str(self.ports[n])), ("tls-auth-clients", clients)]
            return [
                *own,
                *files,
                *((name.replace("_", "-"), value) for name, value in others.items()),
            ]

        def words(lines: list[tuple[str, str]]) -> list[str]:
            return [word for name, value in lines for word in (f"--{name}", value)]

        self.server = Node(binary, "tls", *words(settings(0)))
        self.strict = Node(binary, "tls-strict", *words(settings(1, clients="yes")))
        self.sentinel = Sentinel(
            binary,
            "tls-sentinel",
            *(f"{name} {value}" for name, value in settings(2, tls_replication="yes")),
            f"sentinel monitor {MASTER} 127.0.0.1 {self.ports[0]} 1",
        )
        self.node = ClusterNode(binary, "tls-cluster", *words(settings(3, tls_cluster="yes")))

    def start(self) -> None:
        self.begin([self.server, self.strict, self.sentinel, self.node])
        self.node.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
        wait_for(lambda: self.node.told("CLUSTER", "INFO")["cluster_state"] == "ok", "a cluster")

    def url(self, way: str, **options: object) -> str:
        asked = {"ssl_ca_certs": self.authority.file, "timeout": 5, **options}
        query = "&".join(f"{name}={value}" for name, value in asked.items())
        ports = dict(zip(("", "strict", "+sentinel", "+cluster"), self.ports, strict=True))
        scheme = f"rediss{way}" if way.startswith("+") else "rediss"
        path = f"/{MASTER}" if way == "+sentinel" else ""
        return f"{scheme}://127.0.0.1:{ports[way]}{path}?{query}"

    @property
    def certificate(self) -> dict[str, Path]:
        return {"ssl_certfile": self.client[0], "ssl_keyfile": self.client[1]}


@pytest.fixture(scope="module", params=sorted(with_tls()) or ["none"])
def tls(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsGroup]:
    if request.param == "none":
        pytest.skip("no Redis or Valkey with TLS is installed; run `make programs`")
    binary = with_tls()[request.param]
    group: TlsGroup = started(lambda: TlsGroup(binary, tmp_path_factory.mktemp("tls")))
    yield group
    group.destroy()


async def serves(url: str) -> None:
    """Verbs, the lease and wake-ups."""
    engine = RedisEngine(url, clock=Clock())
    await engine.open()
    work = asyncio.Event()
    stop = await engine.listen(work.set, lambda _: None)
    keeper = engine.keeper(worker := await a_worker(engine), LEASE)
    await enqueue(engine, args=b'"%s"' % (b"x" * 1_000_000))
    await asyncio.wait_for(work.wait(), 60)
    [job] = await claim(engine, worker)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    assert await complete(engine, job)
    await asyncio.to_thread(keeper.close)
    stop()
    await engine.close()


async def test_jobs_go_their_way_without_a_certificate_of_the_client(tls: TlsGroup) -> None:
    await serves(tls.url(""))


async def test_jobs_go_their_way_with_a_certificate_of_the_client(tls: TlsGroup) -> None:
    await serves(tls.url("strict", **tls.certificate))


@pytest.mark.parametrize("way", ["+sentinel", "+cluster"])
async def test_all_who_are_asked_speak_tls(tls: TlsGroup, way: str) -> None:
    await serves(tls.url(way))


async def test_sentinels_may_do_without_tls(tls: TlsGroup) -> None:
    url = tls.url("+sentinel", sentinel_tls="no")
    await serves(url.replace(str(tls.ports[2]), str(tls.sentinel.port)))


@pytest.mark.parametrize("way", ["", "+sentinel", "+cluster"])
async def test_another_authority_is_told_with_its_setting(
    tls: TlsGroup, tmp_path: Path, way: str
) -> None:
    await refused(tls.url(way, ssl_ca_certs=Authority(tmp_path, "another").file), "ssl_ca_certs")


async def test_another_host_name_is_told_with_its_setting(tls: TlsGroup) -> None:
    await refused(tls.url("").replace(HOST, "localhost"), "not valid for .localhost.*HEADRACE_URL")


async def test_a_missing_certificate_is_told_with_its_setting(tls: TlsGroup) -> None:
    await refused(tls.url("strict"), "ssl_certfile", outage=None)


async def test_a_certificate_of_another_authority_is_told_with_its_setting(
    tls: TlsGroup, tmp_path: Path
) -> None:
    file, key = Authority(tmp_path, "another").issue("me", name="client")
    url = tls.url("strict", ssl_certfile=file, ssl_keyfile=key)
    await refused(url, "ssl_certfile", outage=None)


async def test_a_port_without_tls_is_told(tls: TlsGroup) -> None:
    url = tls.url("", timeout=1).replace(str(tls.ports[0]), str(tls.server.port))
    await refused(url, "does not speak TLS.*redis://", outage=True)


async def refused(url: str, says: str, *, outage: bool | None = False) -> None:
    engine = RedisEngine(url, clock=Clock())
    with pytest.raises(EngineError, match=says) as caught:
        await engine.open()
    # It may hang up before it was heard why.
    if outage is not None:
        assert isinstance(caught.value, EngineUnavailable) == outage, "trying again does not help"
    await engine.close()
