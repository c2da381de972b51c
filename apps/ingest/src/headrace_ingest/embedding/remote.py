"""Embeddings of any server with the API of OpenAI: `POST {url}/embeddings`."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from time import time
from typing import Annotated

import httpx
import msgspec

from headrace import AuthenticationError, RetryLater, ValidationError
from headrace_ingest.embedding.base import BATCH_SIZE, EmbeddingError, Vectors, normalised

TIMEOUT_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 3600.0
# What is asked of a server that is busy and does not say for how long.
USUAL_PAUSE_SECONDS = 5.0


class _Row(msgspec.Struct):
    index: Annotated[int, msgspec.Meta(ge=0)]
    embedding: list[float] | str


class _Answer(msgspec.Struct):
    data: list[_Row]


class RemoteEmbedder:
    """Embeds texts by a server. `url` ends before `/embeddings`.

    Raises `AuthenticationError` for a key that is refused, `ValidationError` for texts or a model
    that are, `RetryLater` with the server's pause if it is busy, and `EmbeddingError` for the rest.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        model: str,
        dimensions: int,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.name = model
        self.dimensions = dimensions
        self._address = f"{url.rstrip('/')}/embeddings"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"<RemoteEmbedder {self.name} at {self._address}>"

    async def batch_generate_embeddings(
        self, texts: Sequence[str], batch_size: int = BATCH_SIZE
    ) -> Vectors:
        """Return a row for each text; one request for each batch, one after the other."""
        import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

        parts = [np.empty((0, self.dimensions), np.float32)]
        async with httpx.AsyncClient(headers=self._headers, timeout=self._timeout) as client:
            for start in range(0, len(texts), batch_size):
                batch = list(texts[start : start + batch_size])
                parts.append(await self._batch(client, batch))
        return normalised(np.concatenate(parts))

    async def _batch(self, client: httpx.AsyncClient, texts: list[str]) -> Vectors:
        body = {"model": self.name, "input": texts, "encoding_format": "float"}
        try:
            async with asyncio.timeout(self._timeout):
                answer = await client.post(self._address, json=body)
        except (httpx.TransportError, TimeoutError) as error:
            raise EmbeddingError(
                f"no answer from {self._address}: {type(error).__name__}: {error}"
            ) from error
        self._check(answer)
        return self._vectors(answer.content, len(texts))

    def _check(self, answer: httpx.Response) -> None:
        status = answer.status_code
        if status == httpx.codes.OK:
            return
        told = f"{self._address} answered {status}"
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise AuthenticationError(f"{told}: check the key of the embedding server")
        pause = _pause(answer.headers.get("Retry-After"))
        if status == httpx.codes.TOO_MANY_REQUESTS:
            raise RetryLater(told, delay=USUAL_PAUSE_SECONDS if pause is None else pause)
        if status == httpx.codes.SERVICE_UNAVAILABLE and pause is not None:
            raise RetryLater(told, delay=pause)
        if httpx.codes.is_client_error(status) and status != httpx.codes.REQUEST_TIMEOUT:
            raise ValidationError(f"{told}: {answer.text[:200]}")
        raise EmbeddingError(told)

    def _vectors(self, content: bytes, count: int) -> Vectors:
        import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

        try:
            rows = msgspec.json.decode(content, type=_Answer).data
        except msgspec.DecodeError as error:
            raise EmbeddingError(f"{self._address} answered no embeddings: {error}") from error
        if sorted(row.index for row in rows) != list(range(count)):
            raise EmbeddingError(
                f"{self._address} answered {len(rows)} embeddings for {count} texts"
            )
        result = np.empty((count, self.dimensions), np.float32)
        for row in rows:
            vector = _numbers(row.embedding)
            if len(vector) != self.dimensions:
                raise ValidationError(
                    f"model {self.name} answers vectors of {len(vector)} dimensions, but "
                    f"{self.dimensions} are set; correct the setting for dimensions"
                )
            if not np.isfinite(vector).all():
                raise EmbeddingError(f"{self._address} answered a vector that is not finite")
            result[row.index] = vector
        return result


def _numbers(embedding: list[float] | str) -> Vectors:
    """Some servers answer base64 whatever was asked for."""
    import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

    if isinstance(embedding, str):
        try:
            return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
        except ValueError as error:
            raise EmbeddingError(f"an embedding is neither numbers nor base64: {error}") from error
    return np.asarray(embedding, np.float32)


def _pause(header: str | None) -> float | None:
    """Return the seconds of a `Retry-After`, given as a number or as a date."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time()
        except ValueError:
            return None
    if seconds != seconds:  # noqa: PLR0124 - "nan" is a number for float()
        return None
    return min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS)
