"""Documents are masked by a process of its own, which is replaced when it was killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from headrace_ingest.chunking import split
from headrace_ingest.masking import korean_stems
from headrace_ingest.masking.process import Masker

TEXT = "담당자: 김철수 과장, 전화 010-9713-2468. 사무실은 오후 여섯 시에 닫는다."
MASKED = "담당자: [PERSON] 과장, 전화 [PHONE]. 사무실은 오후 여섯 시에 닫는다."


@pytest.fixture
async def masker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Masker]:
    def never() -> None:
        raise AssertionError("loading the dictionary stops every thread of the worker")

    monkeypatch.setattr(korean_stems, "dictionary", never)
    made = Masker()
    yield made
    await made.close()


async def mask(masker: Masker, text: str) -> str:
    masked = await masker.mask(text, split(text))
    return "".join(chunk.text for chunk in masked.chunks)


async def test_the_dictionary_is_never_in_the_process_of_the_worker(masker: Masker) -> None:
    masked = await masker.mask(TEXT, split(TEXT))
    assert [chunk.text for chunk in masked.chunks] == [MASKED]
    assert masked.found == {"person": 1, "phone": 1}
    child = masker._process.child
    assert child is not None
    os.kill(child._process.pid, signal.SIGKILL)
    await child._process.wait()
    assert await mask(masker, TEXT) == MASKED
    assert masker._process.child is not child


async def test_a_document_that_is_given_up_does_not_hold_up_the_next(masker: Masker) -> None:
    given_up = asyncio.create_task(mask(masker, TEXT * 1000))
    await asyncio.sleep(0)
    assert masker._process._places.locked()
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert masker._process.child is None
    assert await mask(masker, "a@example.com") == "[EMAIL]"


async def test_without_names_no_process_is_needed() -> None:
    masker = Masker(names=False)
    assert await mask(masker, TEXT) == MASKED.replace("[PERSON]", "김철수")
    assert masker._process.child is None
