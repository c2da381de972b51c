"""What crashes and deletions leave behind: files that no row names. An hourly job removes them."""

from __future__ import annotations

import contextlib
from time import time

import msgspec

from headrace import ArtifactNotFound, InvalidInput, JobNotFound
from headrace_speech.service import OWNER, SpeechService

TIDY_TASK = "speech.tidy"
PAGE = 200
# Long enough for a job that was cancelled to notice it.
FORGET_SECONDS = 3600.0


class Tidied(msgspec.Struct, kw_only=True):
    """How many files were released, and how many deleted jobs forgotten."""

    released: int = 0
    forgotten: int = 0


async def tidy(service: SpeechService, *, forget_seconds: float = FORGET_SECONDS) -> Tidied:
    """Release kept files without a row whose job has ended: they then go with it. Forget deleted
    jobs that are gone.
    """
    done = Tidied()
    cursor: str | None = None
    while True:
        page = await service.app.artifacts.kept(OWNER, cursor=cursor, limit=PAGE)
        entered = await service.repository.artifacts([file.path for file in page.files])
        for file in page.files:
            # While a job runs it may be about to enter its file.
            if file.path not in entered and await _has_ended(service, file.job_id):
                with contextlib.suppress(ArtifactNotFound):
                    done.released += await service.app.artifacts.release(file.path, owner=OWNER)
        cursor = page.cursor
        if cursor is None:
            break
    for job_id in await service.repository.deleted_before(time() - forget_seconds, PAGE):
        if await _is_gone(service, job_id):
            await service.repository.forget([job_id])
            done.forgotten += 1
    return done


async def _has_ended(service: SpeechService, job_id: str) -> bool:
    try:
        return (await service.app.get(job_id)).status.final
    except (JobNotFound, InvalidInput):
        return True


async def _is_gone(service: SpeechService, job_id: str) -> bool:
    try:
        await service.app.get(job_id)
    except (JobNotFound, InvalidInput):
        return True
    return False
