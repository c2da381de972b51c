"""Files that come with a job: remembered before they are stored, so that none is left behind.

No attempt has written them, so no index names them. A record in the engine does, until the job is
pruned, or until it is clear that no job was made of them.
"""

from __future__ import annotations

from headrace.engine.base import Engine

KIND = "handed-in-artifacts"


async def expect(engine: Engine, job_id: str) -> None:
    """Files of this job are about to be stored, before the job itself is."""
    await engine.record_put(KIND, job_id, b"{}")


async def forget(engine: Engine, job_id: str) -> None:
    """No file of this job is left."""
    await engine.record_delete(KIND, job_id)
