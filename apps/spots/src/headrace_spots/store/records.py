"""Plain data about shops and their runs, as the repository takes and returns it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace_spots.parsing.found import Review, ShopFacts

SentenceVectors = npt.NDArray[np.floating[Any]]


class RunStatus(StrEnum):
    """How far a run is. Its row in `store_snapshots` shows one of these."""

    QUEUED = "queued"
    CRAWLING = "crawling"
    CRAWLED = "crawled"
    PARSING = "parsing"
    PARSED = "parsed"
    ANALYZING = "analyzing"
    EMBEDDING = "embedding"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Return whether nothing follows by itself."""
        return self in FINAL


FINAL = (RunStatus.COMPLETED, RunStatus.FAILED)
# The progress at which each is shown.
PROGRESS = {
    RunStatus.QUEUED: 0,
    RunStatus.CRAWLING: 2,
    RunStatus.CRAWLED: 50,
    RunStatus.PARSING: 52,
    RunStatus.PARSED: 65,
    RunStatus.ANALYZING: 67,
    RunStatus.EMBEDDING: 80,
    RunStatus.COMPLETED: 100,
}


class Write(StrEnum):
    """What became of a write. `STALE`: a later attempt has written, or the run has ended; nothing
    was changed. `GONE`: the shop was removed.
    """

    STORED = "stored"
    STALE = "stale"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run as its row has it. `run_id` is the id of its job."""

    run_id: str
    store_id: str
    url: str
    status: RunStatus
    progress: int
    error: str | None
    token: int
    pages: int
    reviews: int
    rating: float | None
    positive: int
    negative: int
    neutral: int
    report: str | None
    asked_by: str | None
    owner: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A shop. `run_id` is the last run that was completed."""

    store_id: str
    url: str
    host: str
    name: str | None
    kind: str | None
    address: str | None
    run_id: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedReview:
    """A review with its opinion, and the vectors of its sentences."""

    review: Review
    label: str
    score: float
    vectors: SentenceVectors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """All that a run has found, as it is stored."""

    run_id: str
    facts: ShopFacts
    pages: int
    rating: float | None
    reviews: Sequence[JudgedReview]
    body: Mapping[str, Any]
    report: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredReview:
    """A review as it is read for a search or a list."""

    run_id: str
    store_id: str
    review_id: str
    text: str
    rating: float | None
    day: str | None
    url: str
    label: str
    score: float
