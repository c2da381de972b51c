"""Workers that die at every point of the pipeline: all of a document is stored or nothing, it is
told once, and no stage is done again that has finished. Only what must not be stored, the text that
is not masked, is read and cut anew until masking has finished.

The suite kills a few workers on each engine; `make ingest-kills` two hundred.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ingest_support.document_lives import STAGES, make_app
from ingest_support.running import ROOT, SOURCES
from tests.crash import journal
from tests.publishing.receiver import Receiver, a_receiver

from app.conftest import Stores
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace_ingest.documents import Documents
from headrace_ingest.pipeline import EVENT
from headrace_ingest.service import IngestService
from headrace_ingest.store.sources import FileSource

KILLS = int(os.environ.get("HEADRACE_TEST_INGEST_KILLS", "18"))
"""How many in all, over these places."""

MANY = 100
# The engine of the jobs, and where the tables of the bundle are: beside it, or named.
PLACES = [("sqlite", None), ("postgres", None), ("redis", None)]
if KILLS > MANY:
    PLACES.append(("redis", "postgres"))

LIVES = -(-KILLS // len(PLACES))
# Each life brings documents further, and the next has to find some at its point.
SPARE_DOCUMENTS = 6
UNTIL_MASKED = ("parsing", "chunking")
TEXT = "Parcel {number} weighs {number} kilograms. 담당자: 이영희 과장, 전화 010-5512-8890. "


@pytest.mark.timeout(120 + LIVES * 20)
@pytest.mark.parametrize(("engine", "tables"), PLACES, ids=str)
async def test_a_document_is_stored_whole_and_told_once_wherever_its_worker_dies(
    engine: str,
    tables: str | None,
    stores: Stores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = stores.url(engine, tmp_path)
    environment = settings(tmp_path)
    if tables is not None:
        environment["HEADRACE_INGEST_URL"] = stores.url(tables, tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    app, setup = make_app(url)
    async with app, a_receiver() as receiver:
        await app.put_destination("crm", "webhook", {"url": receiver.url})
        documents = Documents(IngestService(setup))
        ids = await add(documents, LIVES + SPARE_DOCUMENTS)
        # Even a few kills on each engine are at all points together.
        first = PLACES.index((engine, tables)) * LIVES
        answer = await live_and_die(url, tmp_path, first)
        assert answer["ends"] == {"killed": LIVES, "lived on": 1}
        assert answer["half_stored"] == []
        lines = journal.read(tmp_path / "journal.jsonl")
        assert judge_stages(lines, ids) == []
        for document_id in ids:
            shown = await documents.get(document_id)
            assert shown is not None
            assert (shown.status, shown.progress, shown.version) == ("completed", 100, 1)
            assert (await app.get(document_id)).status is Status.COMPLETED
        events = (await app.list(JobFilter(tasks=("headrace.publish",)), limit=500)).jobs
        assert len(events) == len(ids), "an event for each document, under one id"
        judge_events(receiver, ids)
        assert await app.engine.audit() == []
    points = Counter(line.stage for line in lines if line.event == "died")
    begun = Counter(line.stage.partition(" ")[0] for line in lines if line.event == "begun")
    batches = len({(line.job, line.stage) for line in lines if line.stage.startswith("embedding ")})
    again = {each: begun[each] - len(ids) for each in STAGES} | {
        "embedding": begun["embedding"] - batches
    }
    print(
        f"{engine}, tables {tables or 'beside it'}: {LIVES} kills at {len(points)} points, "
        f"{len(ids)} documents, {len(receiver.requests)} events received; "
        f"begun again before they had finished: {again}"
    )


def judge_stages(lines: list[journal.Line], ids: list[str]) -> list[str]:
    """Return what was done that should not have been."""
    wrong = []
    finished: dict[str, set[str]] = {document_id: set() for document_id in ids}
    for line in lines:
        if not line.job:
            continue
        over = finished[line.job]
        if line.event == "begun":
            if "storing" in over:
                wrong.append(f"{line.stage} of {line.job} began after it was stored")
            elif line.stage in over or ("masking" in over and line.stage in UNTIL_MASKED):
                wrong.append(f"{line.stage} of {line.job} began after it had finished")
        elif line.event == "stored":
            if "storing" in over:
                wrong.append(f"{line.job} was stored twice")
            over.add("storing")
        elif line.event == "finished" and line.stage not in UNTIL_MASKED:
            over.add(line.stage)
    runs = Counter((line.job, line.token, line.stage) for line in lines if line.event == "begun")
    wrong += [f"{each} ran {count} times" for each, count in runs.items() if count > 1]
    attempts: dict[tuple[str, int], list[str]] = {}
    for job, token, stage in runs:
        own = attempts.setdefault((job, token), [])
        # Batches of one stage follow each other.
        if (name := stage.partition(" ")[0]) not in own[-1:]:
            own.append(name)
    wrong += [f"{each} began {own}" for each, own in attempts.items() if not in_order(own)]
    return wrong + [f"{each} was never stored" for each in ids if "storing" not in finished[each]]


def in_order(stages: list[str]) -> bool:
    """An attempt begins with the first stage that has not finished."""
    first = STAGES.index(stages[0])
    return tuple(stages) == STAGES[first : first + len(stages)]


def judge_events(receiver: Receiver, ids: list[str]) -> None:
    told: dict[str, set[str]] = {document_id: set() for document_id in ids}
    for request in receiver.requests:
        assert request.event["type"] == EVENT
        told[request.event["data"]["document_id"]].add(request.event["id"])
    assert [len(each) for each in told.values()] == [1] * len(ids)


async def add(documents: Documents, count: int) -> list[str]:
    """Hand in documents of some chunks."""
    accepted = []
    for number in range(count):
        text = "".join(TEXT.format(number=each) for each in range(number, number + 20))
        async with FileSource(text.encode()) as source:
            accepted.append(await documents.add(source, f"{number}.txt"))
    return [each.document_id for each in accepted]


def settings(folder: Path) -> dict[str, str]:
    return {
        "HEADRACE_ARTIFACTS": str(folder / "artifacts"),
        "HEADRACE_INGEST_PARSERS": "1",
        # Several for each document.
        "HEADRACE_INGEST_BATCH_SIZE": "2",
        # Each life would load the dictionary anew, in a process of its own.
        "HEADRACE_INGEST_MASK_NAMES": "false",
        "HEADRACE_ALLOW_PRIVATE_WEBHOOKS": "true",
        journal.VARIABLE: str(folder / "journal.jsonl"),
    }


async def live_and_die(url: str, folder: Path, first: int) -> dict[str, Any]:
    """Run the program with many lives to its end."""
    support = Path(__file__).parents[1]
    path = os.pathsep.join(str(each) for each in [*SOURCES, ROOT, support])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ingest_support.document_lives"),
        *(url, str(LIVES), str(first)),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    answer: dict[str, Any] = msgspec.json.decode(output)
    return answer
