"""The rolling upgrade fails if the migration is one that older programs do not survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.upgrade.conftest import Broken, Scene
from tests.upgrade.installations import Installation
from tests.upgrade.rolling import roll

SQLITE = "engine/sqlite/migrations/0004_worker_schema.sql"
POSTGRES = "engine/postgres/migrations/0014_worker_schema.sql"

HEADER = "-- Older programs go on working"
REFUSING = (
    (SQLITE, HEADER, f"-- min_program: 4\n{HEADER}"),
    (POSTGRES, HEADER, f"-- min_program: 14\n{HEADER}"),
    (
        "engine/redis/layout.py",
        '"0003_worker_schema", ""',
        '"0003_worker_schema", "", min_program=3',
    ),
)

# A column that older programs would have to fill. SQLite does not add such a column: a trigger says
# the same. On Redis, jobs are stored with a part that older programs do not expect.
NOT_NULL = "worker ADD COLUMN schema_version integer NOT NULL DEFAULT 14;"
TRIGGER = """worker ADD COLUMN schema_version INTEGER;
CREATE TRIGGER worker_schema BEFORE INSERT ON worker WHEN NEW.schema_version IS NULL
BEGIN
    SELECT RAISE(ABORT, 'NOT NULL constraint failed: worker.schema_version');
END;
"""
INCOMPATIBLE = (
    (SQLITE, "worker ADD COLUMN schema_version INTEGER;", TRIGGER),
    (
        POSTGRES,
        "worker ADD COLUMN schema_version integer;",
        f"{NOT_NULL}\nALTER TABLE worker ALTER COLUMN schema_version DROP DEFAULT;",
    ),
    (
        "engine/redis/codec.py",
        "class Body(msgspec.Struct, array_like=True, gc=False):",
        "class Body(msgspec.Struct, array_like=True, gc=False, tag=True):",
    ),
)


@pytest.mark.timeout(240)
async def test_a_migration_that_refuses_older_programs_is_noticed(
    scene: Scene, old: Installation, new: Installation, tmp_path: Path
) -> None:
    refusing = new.changed(tmp_path / "refusing", *REFUSING)
    # On PostgreSQL one at work loses the functions that were its own.
    with pytest.raises(Broken, match=r"(?s)the old .*(Upgrade Headrace here|does not exist)"):
        await roll(scene, old, refusing)
    # The older program says which version it would have to know, and what to do.
    for command in (("jobs", "list"), ("migrate",)):
        ran = old.run(*command, HEADRACE_URL=scene.url)
        assert ran.code != 0
        assert "is for programs that know version" in ran.err
        assert "Upgrade Headrace here" in ran.err
        assert "Traceback" not in ran.err


@pytest.mark.timeout(240)
async def test_a_migration_that_older_programs_do_not_survive_is_noticed(
    scene: Scene, family: str, old: Installation, new: Installation, tmp_path: Path
) -> None:
    incompatible = new.changed(tmp_path / "incompatible", *INCOMPATIBLE)
    reason = "Expected `bytes`" if family == "redis" else "schema_version"
    with pytest.raises(Broken, match=rf"(?s)the old .*{reason}"):
        await roll(scene, old, incompatible)
