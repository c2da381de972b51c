"""What `doctor` shows of the store: its settings, its file, and its invariants."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from headrace.engine.sqlite.connection.address import SqliteAddress
from headrace.engine.sqlite.connection.migrate import schema_version
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.sql import sql
from headrace.model.views import EngineReport, EngineSpace, Finding

LOW_DISK_BYTES = 500_000_000
# Their locks cannot be trusted, and shared memory, which the write-ahead log needs, does not work.
NETWORK_FILESYSTEMS = ("nfs", "cifs", "smb", "afp", "9p", "ceph", "glusterfs", "fuse.sshfs")
MOUNTS = Path("/proc/self/mounts")
SYNCHRONOUS_NAMES = {0: "off", 1: "normal", 2: "full", 3: "extra"}
REMEDY = "This is a defect in Headrace: keep a copy of the file and report it."

# What a row of each check means.
CHECKS = (
    (sql.audit_places, "lane {1!r} of queue {0!r} counts {2} used places but {3} are held"),
    (sql.audit_stuck, "lane {1!r} of queue {0!r} uses {3} of {2} places while {4} jobs wait"),
    (sql.audit_beaten, "a waiting job of lane {1!r} of queue {0!r} beats a ready one"),
    (sql.audit_twice, "job {0} is both finished and unfinished"),
    (sql.audit_keys, "key {0!r} of task {1!r} and job {2} do not belong together"),
    (sql.audit_suspended, "job {0} waits for something, but is not scheduled"),
    (sql.audit_rates, "job {0} has a rate, but its lane {2!r} of queue {1!r} has none"),
    (sql.audit_parked, "job {0} was parked, but nothing is kept of its lane {2!r} of queue {1!r}"),
    (sql.audit_entries, "job {0} is gone but its entries are kept"),
)


def report(transaction: Transaction, address: SqliteAddress) -> EngineReport:
    """Report on the writer's connection and the file, each finding with its remedy."""
    connection = transaction.connection
    findings = [_journal(connection, address), _synchronous(connection)]
    if address.path is not None:
        findings += [_file(address.path), _disk(address.path), _filesystem(address.path)]
    return EngineReport(
        engine="sqlite",
        server_version=sqlite3.sqlite_version,
        schema_version=schema_version(connection),
        clock_skew=0.0,
        findings=findings,
        space=None if address.path is None else _space(address.path),
    )


def audit(transaction: Transaction) -> list[Finding]:
    """Return every violation of an invariant, over the whole store."""
    return [
        Finding("error", "store", text.format(*row), REMEDY)
        for statement, text in CHECKS
        for row in transaction.connection.execute(statement)
    ]


def _journal(connection: sqlite3.Connection, address: SqliteAddress) -> Finding:
    [(mode,)] = connection.execute("PRAGMA journal_mode").fetchall()
    if address.path is None:
        return Finding(
            "warning",
            "storage",
            "the database is in memory: jobs are gone when this process ends",
            "Name a file in HEADRACE_URL, e.g. sqlite:///headrace.db.",
        )
    if mode != "wal":
        return Finding(
            "warning",
            "journal",
            f"journal mode is {mode}, so readers and the writer wait for each other",
            "Put the file on a local disk that supports write-ahead logs.",
        )
    return Finding("ok", "journal", "write-ahead log")


def _synchronous(connection: sqlite3.Connection) -> Finding:
    [(level,)] = connection.execute("PRAGMA synchronous").fetchall()
    name = SYNCHRONOUS_NAMES.get(level, str(level))
    if level < 2:
        return Finding(
            "warning",
            "durability",
            f"synchronous is {name}: a power cut may lose jobs that were acknowledged",
            "Remove synchronous from HEADRACE_URL; the default is full.",
        )
    return Finding("ok", "durability", f"synchronous is {name}: acknowledged means on disk")


def _space(path: Path) -> EngineSpace:
    free = shutil.disk_usage(path.absolute().parent).free
    return EngineSpace(where="disk", used_bytes=_size(path), free_bytes=free)


def _size(path: Path) -> int:
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(os.path.getsize(name) for name in files if os.path.exists(name))


def _file(path: Path) -> Finding:
    return Finding("ok", "size", f"{path.name} has {_size(path):,} bytes")


def _disk(path: Path) -> Finding:
    free = shutil.disk_usage(path.absolute().parent).free
    if free < LOW_DISK_BYTES:
        return Finding(
            "warning",
            "disk",
            f"only {free:,} bytes are free where {path.name} lives",
            "Free disk space, or prune finished jobs.",
        )
    return Finding("ok", "disk", f"{free:,} bytes are free")


def _filesystem(path: Path) -> Finding:
    kind = _filesystem_kind(path.resolve())
    if kind.startswith(NETWORK_FILESYSTEMS):
        return Finding(
            "warning",
            "filesystem",
            f"{path.name} is on {kind}, where SQLite's locks are not safe",
            "Move the file to a local disk, or use PostgreSQL or Redis for several machines.",
        )
    return Finding("ok", "filesystem", kind or "unknown")


def _filesystem_kind(path: Path) -> str:
    try:
        lines = MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return ""  # not Linux
    # device, folder, kind, …; a space in a folder's name is written \\040
    mounts = {fields[1].replace("\\040", " "): fields[2] for fields in map(str.split, lines)}
    return next((mounts[str(one)] for one in path.parents if str(one) in mounts), "")
