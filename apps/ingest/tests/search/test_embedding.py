"""Texts become vectors, by the local model and by a server that may be busy, wrong or away."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from ingest_support.embedding_server import EmbeddingServer, an_embedding_server

from headrace import AuthenticationError, RetryLater, ValidationError
from headrace_ingest.embedding import (
    EmbeddingError,
    LocalEmbedder,
    RemoteEmbedder,
    embed_chunks,
    sentences,
)

KEY = "sk-very-secret"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with an_embedding_server() as made:
        yield made


@pytest.fixture
def remote(server: EmbeddingServer) -> RemoteEmbedder:
    return RemoteEmbedder(server.url, key=KEY, model="some-model", dimensions=4)


async def test_a_server_is_asked_in_batches_and_answers_in_any_order(
    server: EmbeddingServer, remote: RemoteEmbedder
) -> None:
    vectors = await remote.batch_generate_embeddings(["a"] * 120)
    assert vectors.shape == (120, 4)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert [len(request["input"]) for request in server.requests] == [50, 50, 20]
    assert {request["model"] for request in server.requests} == {"some-model"}
    assert set(server.keys) == {f"Bearer {KEY}"}


async def test_a_server_may_answer_base64(server: EmbeddingServer, remote: RemoteEmbedder) -> None:
    server.base64 = True
    vectors = await remote.batch_generate_embeddings(["a", "bb"])
    assert np.allclose(vectors, np.array([1, 2, 3, 4]) / np.sqrt(30))


async def test_no_texts_need_no_request(server: EmbeddingServer, remote: RemoteEmbedder) -> None:
    assert (await remote.batch_generate_embeddings([])).shape == (0, 4)
    assert server.requests == []


@pytest.mark.parametrize(
    ("header", "delay"),
    [({"Retry-After": "7"}, 7.0), ({}, 5.0), ({"Retry-After": "99999"}, 3600.0)],
)
async def test_a_busy_server_is_asked_again_when_it_says(
    server: EmbeddingServer, remote: RemoteEmbedder, header: dict[str, str], delay: float
) -> None:
    server.answers.append((429, header, b"busy"))
    with pytest.raises(RetryLater) as raised:
        await remote.batch_generate_embeddings(["a"])
    assert raised.value.delay == delay


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_never_retried_nor_shown(
    server: EmbeddingServer, remote: RemoteEmbedder, status: int
) -> None:
    server.answers.append((status, {}, b"no"))
    with pytest.raises(AuthenticationError) as raised:
        await remote.batch_generate_embeddings(["a"])
    assert KEY not in f"{raised.value}{remote!r}"


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (400, b"too long", ValidationError),
        (404, b"no such model", ValidationError),
        (500, b"broken", EmbeddingError),
        (503, b"", EmbeddingError),
        (200, b"<html>", EmbeddingError),
        (200, b'{"data": []}', EmbeddingError),
        (200, b'{"data": [{"index": 0, "embedding": "%%%"}]}', EmbeddingError),
    ],
)
async def test_an_answer_that_is_no_embedding_says_so(
    server: EmbeddingServer,
    remote: RemoteEmbedder,
    status: int,
    content: bytes,
    error: type[Exception],
) -> None:
    server.answers.append((status, {}, content))
    with pytest.raises(error):
        await remote.batch_generate_embeddings(["a"])


async def test_wrong_dimensions_are_a_clear_error(
    server: EmbeddingServer, remote: RemoteEmbedder
) -> None:
    server.dimensions = 3
    with pytest.raises(ValidationError, match="vectors of 3 dimensions, but 4 are set"):
        await remote.batch_generate_embeddings(["a"])


async def test_a_dead_server_is_worth_a_retry(server: EmbeddingServer) -> None:
    gone = RemoteEmbedder("http://127.0.0.1:9", key=None, model="m", dimensions=4)
    with pytest.raises(EmbeddingError, match="no answer from"):
        await gone.batch_generate_embeddings(["a"])


async def test_the_local_model_knows_what_is_alike_across_languages(
    embedder: LocalEmbedder,
) -> None:
    texts = ["How many days of leave?", "휴가는 며칠인가요?", "The printer is out of toner."]
    vectors = await embedder.batch_generate_embeddings(texts, batch_size=2)
    assert vectors.shape == (3, embedder.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert (await embedder.batch_generate_embeddings([])).shape == (0, 512)


async def test_each_sentence_of_a_chunk_has_a_vector_and_doubles_are_embedded_once(
    server: EmbeddingServer, remote: RemoteEmbedder
) -> None:
    first, second = "The first sentence is here.", "And this is the second one."
    found = await embed_chunks(remote, [f"{first} {second}", second], whole=True)
    assert [sorted(numbered) for numbered in found] == [[0, 1, 2], [0, 1]]
    asked = [text for request in server.requests for text in request["input"]]
    assert sorted(asked) == sorted({f"{first} {second}", first, second})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        (" \n ", []),
        (
            "연차휴가는 십오 일로 한다. 병가는 육십 일까지 쓸 수 있다.",
            ["연차휴가는 십오 일로 한다.", "병가는 육십 일까지 쓸 수 있다."],
        ),
        (
            'He said "We close at five today." Then Dr. Kim of St. Mary left the building.',
            ['He said "We close at five today."', "Then Dr. Kim of St. Mary left the building."],
        ),
        (
            "Heading\n\nThe text below the heading goes on.",
            ["Heading The text below the heading goes on."],
        ),
        (
            "The value is 3.5 or e.g. 4.5 in some rare cases.",
            ["The value is 3.5 or e.g. 4.5 in some rare cases."],
        ),
    ],
)
def test_texts_are_cut_into_sentences(text: str, wanted: list[str]) -> None:
    assert sentences(text) == wanted


def test_long_sentences_are_cut_and_nothing_is_lost() -> None:
    text = ", ".join(f"clause number {number} of the law" for number in range(60))
    parts = sentences(text)
    assert max(map(len, parts)) <= 240
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert "".join(sentences("가" * 600)) == "가" * 600
