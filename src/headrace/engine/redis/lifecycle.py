"""Opening, closing and looking after the store."""

from __future__ import annotations

import time

from headrace.engine.redis import layout
from headrace.engine.redis.connection.store import RedisStore
from headrace.errors import EngineError, EngineUnavailable
from headrace.model.views import EngineReport, EngineSpace, Finding, SchemaState

OLDEST_SERVER = (7, 0)
# The parts of the store that audit.lua goes through.
AUDITED = (
    *("due", "ready", "reserved", "held", "waiting", "places"),
    *("children", "unfinished", "suspended", "lanes", "sums"),
)
MOST_FINDINGS = 100
EMPTIED = Finding(
    "error",
    "schema",
    "the store was emptied while it was in use: what was stored is gone",
    "find out who did it (FLUSHALL, or a server that came back without its data), restore a "
    "backup, and start the programs that use the store again",
)


class Lifecycle(RedisStore):
    """See `headrace.engine.base.Lifecycle`."""

    name = "redis"

    async def open(self) -> None:
        if self._may_migrate:
            await self.migrate()
        else:
            layout.check(await self.schema(), self.address, allowed=False)

    async def _connect(self) -> None:
        self._link.reopen()
        self._large.reopen()
        wire = await self._link.wire()
        version = wire.server.get("version", "0")
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SERVER:
            raise EngineError(
                f"the server at {self.address} is version {version}; Headrace needs Redis 7.0 or "
                "newer, or Valkey"
            )
        if wire.server.get("mode") == "cluster" and not self.address.follows:
            raise EngineError(
                f"the server at {self.address} is part of a Redis Cluster. Use redis+cluster:// "
                "(or rediss+cluster://) instead of redis:// in HEADRACE_URL"
            )

    async def schema(self) -> SchemaState:
        await self._connect()
        version, schema = await self._link.call("HMGET", self.key("meta"), "version", "schema")
        return layout.state_of(version, schema)

    async def migrate(self) -> None:
        await self._connect()
        version, schema = await self.run("migrate", layout.newest(), *layout.limits())
        layout.check(layout.state_of(version, schema), self.address, allowed=True)

    async def close(self) -> None:
        try:
            await self._large.close()
        finally:
            await self._link.close()

    async def report(self) -> EngineReport:
        wire = await self._link.wire()
        before = time.time()
        seconds, micros = await self._link.call("TIME")
        middle = (before + time.time()) / 2
        skew = int(seconds) + int(micros) / 1e6 - middle
        schema = (await self.schema()).version
        return EngineReport(
            engine=self.name,
            server_version=wire.server.get("version", "0"),
            schema_version=schema,
            clock_skew=skew,
            findings=[
                self._server(wire.server),
                *([] if schema else [EMPTIED]),
                *await self._settings(),
                _clock(skew),
            ],
            space=await self._space(),
        )

    async def audit(self) -> list[Finding]:
        """Goes through the store piece by piece, so that nobody waits for all of it."""
        remedy = "stop all workers, keep a copy of the data and report this as a bug"
        texts: list[bytes] = []
        for part in AUDITED:
            at: bytes = b""
            while len(texts) < MOST_FINDINGS:
                at, *found = await self.run("audit", part, at)
                texts += found
                if not at:
                    break
        return [
            Finding("error", "invariants", text.decode("utf-8", "replace"), remedy)
            for text in dict.fromkeys(texts)
        ][:MOST_FINDINGS]

    def _server(self, server: dict[str, str]) -> Finding:
        kind = {"valkey": "Valkey"}.get(server.get("server", ""), "Redis")
        return Finding("ok", "server", f"{kind} {server.get('version')} at {self.address}")

    async def _space(self) -> EngineSpace | None:
        """The memory of the server, where it tells: not all that are hosted do."""
        try:
            text = bytes(await self._link.call("INFO", "memory")).decode("utf-8", "replace")
        except EngineUnavailable:
            raise
        except EngineError:
            return None
        told = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        try:
            used, most = int(told["used_memory"]), int(told.get("maxmemory", "0"))
        except (KeyError, ValueError):
            return None
        free = max(most - used, 0) if most else None
        return EngineSpace(where="memory", used_bytes=used, free_bytes=free)

    async def _settings(self) -> list[Finding]:
        """Durability and eviction, as far as the server tells."""
        try:
            answer = await self._link.call(
                "CONFIG", "GET", "appendonly", "appendfsync", "maxmemory", "maxmemory-policy"
            )
        except EngineUnavailable:
            raise
        except EngineError as error:
            return [
                Finding(
                    "warning",
                    "settings",
                    f"the server does not tell its settings ({error})",
                    "make sure that appendonly is yes and maxmemory-policy is noeviction",
                )
            ]
        texts = [part.decode() for part in answer]
        return _judge(dict(zip(texts[::2], texts[1::2], strict=True)))


def _judge(settings: dict[str, str]) -> list[Finding]:
    return [_durability(settings), _eviction(settings)]


def _durability(settings: dict[str, str]) -> Finding:
    if settings.get("appendonly") != "yes":
        return Finding(
            "error",
            "durability",
            "appendonly is off: a crash of the server loses acknowledged jobs",
            "set appendonly yes (CONFIG SET appendonly yes, then CONFIG REWRITE)",
        )
    match settings.get("appendfsync"):
        case "always":
            return Finding("ok", "durability", "appendfsync always: acknowledged jobs are on disk")
        case "everysec":
            return Finding(
                "ok",
                "durability",
                "appendfsync everysec: a power cut may lose the last second; always loses nothing",
            )
        case other:
            return Finding(
                "warning",
                "durability",
                f"appendfsync is {other}: the system decides when jobs reach the disk",
                "set appendfsync everysec, or always where no acknowledged job may be lost",
            )


def _eviction(settings: dict[str, str]) -> Finding:
    policy = settings.get("maxmemory-policy", "noeviction")
    if policy != "noeviction":
        limited = settings.get("maxmemory", "0") != "0"
        return Finding(
            "error" if limited else "warning",
            "eviction",
            f"maxmemory-policy is {policy}: the server throws jobs away when memory runs short",
            "set maxmemory-policy noeviction; enqueueing then fails with a clear error instead",
        )
    return Finding("ok", "eviction", "maxmemory-policy is noeviction: nothing is thrown away")


def _clock(skew: float) -> Finding:
    if abs(skew) > 2:
        return Finding(
            "warning",
            "clock",
            f"the server's clock and this machine's differ by {skew:.1f} s; the server's counts",
            "run a time service (NTP) on both, so that times given as run_at mean what they say",
        )
    return Finding("ok", "clock", f"the server's clock and this machine's differ by {skew:.3f} s")
