"""What every embedder does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from headrace import HeadraceError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"

BATCH_SIZE = 50


class EmbeddingError(HeadraceError):
    """A server answered something that is no embedding, or was not reached. Worth a retry."""


class Embedder(Protocol):
    """Turns texts into vectors of length 1, so that their product is their cosine."""

    @property
    def name(self) -> str:
        """Return the model. Vectors of different models cannot be compared."""

    @property
    def dimensions(self) -> int:
        """Return how many numbers a vector has."""

    async def batch_generate_embeddings(
        self, texts: Sequence[str], batch_size: int = BATCH_SIZE
    ) -> Vectors:
        """Return a row for each text, in the same order; `batch_size` texts at a time."""


def normalised(vectors: Vectors) -> Vectors:
    """Return the vectors with length 1; those of length 0 as they are."""
    import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
