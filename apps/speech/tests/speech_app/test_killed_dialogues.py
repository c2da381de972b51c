"""Workers that die at every point: each job that completes has one file, audible and of the right
length; there is no file without a row, and no row without a file.

The suite makes a few files on each engine; `make speech-kills` a hundred of ten users.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from speech_support.dialogue_lives import POINTS, make_app
from speech_support.listening import FILLED_SECONDS, hear
from speech_support.making import Made, a_local_script
from speech_support.places import Place
from tests.support.processes import ROOT
from tests.support.stores import ENGINES

from headrace import JobFilter, Status
from headrace_speech.dialogues import Dialogues
from headrace_speech.providers.local import LocalProvider
from headrace_speech.script import Script
from headrace_speech.service import OWNER, TASK
from headrace_speech.sound.mixing import trimmed
from headrace_speech.store.records import AudioFilter
from headrace_speech.tidy import tidy

JOBS = int(os.environ.get("HEADRACE_TEST_SPEECH_JOBS", "5"))
"""How many on each engine."""
USERS = min(10, max(2, JOBS // 4))
# Even a few kills on each engine are at all points together.
KILLS = max(4, JOBS - 1)
PAUSE = 0.4
LIMIT = 90 + JOBS * 12


def script(number: int) -> Script:
    return a_local_script(
        f"작업 {number}번입니다.", f"This is job {number}.", title=f"job {number}"
    )


@pytest.mark.timeout(LIMIT)
async def test_every_file_has_its_row_wherever_workers_die(
    engine: str, place: Place, tmp_path: Path
) -> None:
    where = (place.url, place.tables, place.artifacts)
    app, service = make_app(*where)
    async with app:
        dialogues = Dialogues(service)
        made = Made(app, service.setup, service, dialogues)
        ids = {}
        for number in range(JOBS):
            accepted = await dialogues.hand_in(script(number), user=f"user {number % USERS}")
            ids[accepted.job_id] = number
        first = ENGINES.index(engine) * KILLS
        answer = await live_and_die(tmp_path, *where, KILLS, first)
        # Towards the end there may be nothing left to die of.
        assert answer["ends"]["killed"] >= KILLS - 1
        jobs = (await app.list(JobFilter(tasks=(TASK,)), limit=1000)).jobs
        assert {job.id: job.status for job in jobs} == dict.fromkeys(ids, Status.COMPLETED)
        rows = await judge_files(made, ids)
        events = (await app.list(JobFilter(tasks=("headrace.publish",)), limit=1000)).jobs
        assert len(events) == len(ids), "an event for each file, under one id"
        # Whatever was left lying about goes with its job; the files of rows do not.
        assert (await tidy(service)).released == 0
        await made.prune()
        kept = {file.path async for file in all_kept(made)}
        assert kept == rows
        # Workers do this to halves of files that are a day old.
        await app.artifact_store.tidy(older_than=0.0)
        assert await place.files() == rows, "what is in the folder or bucket is what rows name"
        for path in rows:
            assert await app.artifacts.get(path)
        assert await app.engine.audit() == []
    service.close()
    killed = answer["ends"]["killed"]
    print(
        f"{engine}: {len(ids)} jobs of {USERS} users, {killed} kills at "
        f"{min(len(POINTS), killed)} points, {answer['handed_in_again']} handed in again, "
        f"{len(rows)} files and rows"
    )


async def judge_files(made: Made, ids: dict[str, int]) -> set[str]:
    """Hear every file; return where they are."""
    provider = LocalProvider(processes=1)
    paths = set()
    rows, following = await made.dialogues.audio_files(AudioFilter(), limit=1000, after=None)
    assert following is None
    assert sorted(row.job_id for row in rows) == sorted(ids)
    try:
        for view in rows:
            row = await made.dialogues.audio(view.audio_file_id)
            assert row is not None
            content = await made.app.artifacts.get(row.artifact, sha256=row.checksum)
            heard = hear(content)
            wanted = script(ids[row.job_id])
            length = PAUSE
            for turn in wanted.turns:
                sound = await provider.speak(turn.text, wanted.voice_assignments[turn.role])
                length += trimmed(sound).seconds
            turns = await made.dialogues.turns(row.job_id)
            assert turns is not None
            own = PAUSE + sum(turn.seconds or 0.0 for turn in turns)
            assert row.seconds == pytest.approx(own, abs=0.01)
            assert heard.seconds == pytest.approx(own, abs=FILLED_SECONDS)
            # The library breathes: two times are never quite the same.
            assert row.seconds == pytest.approx(length, rel=0.1)
            assert heard.loudness == pytest.approx(-20, abs=1.5)
            assert len(content) == row.bytes
            paths.add(row.artifact)
    finally:
        provider.close()
    return paths


async def all_kept(made: Made) -> Any:
    cursor: str | None = None
    while True:
        page = await made.app.artifacts.kept(OWNER, cursor=cursor, limit=100)
        for file in page.files:
            yield file
        cursor = page.cursor
        if cursor is None:
            return


async def live_and_die(folder: Path, *arguments: object) -> dict[str, Any]:
    """Run the program with many lives to its end."""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join(str(each) for each in [ROOT, ROOT / "src", tests.parent / "src", tests])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "speech_support.dialogue_lives"),
        *(str(each) for each in arguments),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output
    answer: dict[str, Any] = msgspec.json.decode(output)
    return answer
