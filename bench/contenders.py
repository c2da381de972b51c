"""Who is measured, on which engine, with which packages and settings."""

from __future__ import annotations

from dataclasses import dataclass, field

HEADRACE = "Headrace"
BARE = "bare limit"
# Of tables and statements of its own, so that it also tells what ours cost.
INDEPENDENT = "bare limit, own statements"


@dataclass(frozen=True, kw_only=True, eq=False)
class Contender:
    """A program, the environment it runs in, and what is known about it.

    `packages` empty means the project's own environment. `drain` bounds how many jobs a slow
    contender takes in at once and works off, so that a run ends: rates are compared, not times.
    """

    name: str
    engine: str
    program: str
    packages: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    asyncio: bool = True
    drain: int = 20_000

    @property
    def ours(self) -> bool:
        return self.name == HEADRACE

    @property
    def bare(self) -> bool:
        return self.name in (BARE, INDEPENDENT)

    @property
    def peer(self) -> bool:
        return not (self.ours or self.bare)


def _peer(name: str, engine: str, program: str, *packages: str, **more: object) -> Contender:
    return Contender(
        name=name,
        engine=engine,
        program=f"bench.peers.{program}_program",
        packages=packages,
        **more,  # type: ignore[arg-type]
    )


_PGQUEUER = ("pgqueuer[asyncpg]==1.6.0", "typer<0.21")
_TASKIQ = ("taskiq==0.13.0", "taskiq-redis==1.2.4", "hiredis")

CONTENDERS = [
    *(
        Contender(name=HEADRACE, engine=engine, program="bench.headrace_program")
        for engine in ("sqlite", "postgres", "redis")
    ),
    _peer(
        "PgQueuer, batch 100",
        "postgres",
        "pgqueuer",
        *_PGQUEUER,
        environment={"BENCH_BATCH": "100"},
    ),
    _peer("PgQueuer, default", "postgres", "pgqueuer", *_PGQUEUER),
    _peer("SAQ", "postgres", "saq", "saq[postgres]==0.26.4", "typing_extensions", drain=2_000),
    _peer(
        "Procrastinate",
        "postgres",
        "procrastinate",
        "procrastinate==3.10.0",
        "psycopg[binary,pool]",
        drain=2_000,
    ),
    _peer("DBOS, poll 10 ms", "postgres", "dbos", "dbos==3.3.0", asyncio=False, drain=1_000),
    _peer(
        "Huey (no acknowledgement)",
        "redis",
        "huey",
        "huey==3.5.4",
        "redis",
        "hiredis",
        asyncio=False,
    ),
    _peer(
        "Dramatiq",
        "redis",
        "dramatiq",
        "dramatiq[redis]==2.2.1",
        "hiredis",
        asyncio=False,
        drain=10_000,
    ),
    _peer(
        "Taskiq, stream",
        "redis",
        "taskiq",
        *_TASKIQ,
        environment={"BENCH_KIND": "stream"},
        drain=10_000,
    ),
    _peer(
        "Taskiq, list",
        "redis",
        "taskiq",
        *_TASKIQ,
        environment={"BENCH_KIND": "list"},
        drain=10_000,
    ),
    _peer("SAQ", "redis", "saq", "saq[redis]==0.26.4", "hiredis", "typing_extensions", drain=5_000),
    _peer("streaQ", "redis", "streaq", "streaq==7.2.0", drain=5_000),
    _peer("Celery, threads", "redis", "celery", "celery[redis]==5.7.0", asyncio=False, drain=5_000),
    _peer("RQ, simple worker", "redis", "rq", "rq==2.12.0", asyncio=False, drain=1_000),
    _peer("arq, poll 10 ms", "redis", "arq", "arq==0.28.0", "hiredis", drain=5_000),
    _peer("Huey", "sqlite", "huey", "huey==3.5.4", asyncio=False, drain=10_000),
    *(
        Contender(name=BARE, engine=engine, program=f"bench.bare.{engine}_program")
        for engine in ("sqlite", "postgres", "redis")
    ),
    Contender(
        name=INDEPENDENT,
        engine="postgres",
        program="bench.bare.postgres_independent_program",
    ),
]
