"""Shops and runs as the API returns them. No I/O."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headrace import Job
from headrace_spots.store.records import Snapshot, Store, StoredReview


class AcceptedRun(msgspec.Struct, kw_only=True):
    """A run that was asked for."""

    job_id: str
    status: str
    store_id: str


class StoreBrief(msgspec.Struct, kw_only=True):
    """A shop, in short."""

    store_id: str
    url: str
    name: str | None


class JobState(msgspec.Struct, kw_only=True):
    """What the queue knows about a run."""

    status: str
    attempt: int
    max_attempts: int
    queue: str
    lane: str | None


class RunView(msgspec.Struct, kw_only=True):
    """A run: what its row says, and beside it what the queue does. `job` is None if that is no
    longer in the history.
    """

    job_id: str
    run_id: str
    status: str
    progress: int
    error: str | None
    store: StoreBrief
    url: str
    pages: int
    reviews: int
    rating: float | None
    sentiment: dict[str, int]
    report: bool
    created_at: datetime
    updated_at: datetime
    job: JobState | None = None


class StoreView(msgspec.Struct, kw_only=True):
    """A shop with its last completed run."""

    store_id: str
    url: str
    host: str
    name: str | None
    kind: str | None
    address: str | None
    run_id: str | None
    created_at: datetime
    updated_at: datetime
    last: RunView | None = None
    """The newest run, however it is."""
    rating: float | None = None
    reviews: int = 0
    sentiment: dict[str, int] = {}


class StoreDetail(StoreView, kw_only=True):
    """A shop with all that is known about it."""

    analysis: dict[str, Any] | None = None
    history: list[RunView] = []
    schedule: dict[str, Any] | None = None


class ReviewView(msgspec.Struct, kw_only=True):
    """A review."""

    review_id: str
    text: str
    rating: float | None
    day: str | None
    label: str
    url: str


class ReviewHit(msgspec.Struct, kw_only=True):
    """A review that was found; `sentence` is the one that answers best."""

    store_id: str
    run_id: str
    review_id: str
    shop: str | None
    text: str
    sentence: str
    score: float
    rating: float | None
    day: str | None
    label: str
    url: str


def run_of(row: Snapshot, store: Store | None, job: Job | None = None) -> RunView:
    """Return a run as the API does."""
    state = None
    if job is not None:
        state = JobState(
            status=str(job.status),
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            queue=job.queue,
            lane=job.lane,
        )
    return RunView(
        job_id=row.run_id,
        run_id=row.run_id,
        status=row.status,
        progress=row.progress,
        error=row.error,
        store=StoreBrief(
            store_id=row.store_id,
            url=row.url if store is None else store.url,
            name=None if store is None else store.name,
        ),
        url=row.url,
        pages=row.pages,
        reviews=row.reviews,
        rating=row.rating,
        sentiment=sentiment_of(row),
        report=row.report is not None,
        created_at=row.created_at,
        updated_at=row.updated_at,
        job=state,
    )


def sentiment_of(row: Snapshot) -> dict[str, int]:
    """Return how many reviews of a run are of each opinion."""
    return {"positive": row.positive, "negative": row.negative, "neutral": row.neutral}


def store_fields(store: Store, current: Snapshot | None, last: RunView | None) -> dict[str, Any]:
    """Return the fields of a `StoreView`."""
    return {
        "store_id": store.store_id,
        "url": store.url,
        "host": store.host,
        "name": store.name,
        "kind": store.kind,
        "address": store.address,
        "run_id": store.run_id,
        "created_at": store.created_at,
        "updated_at": store.updated_at,
        "last": last,
        "rating": None if current is None else current.rating,
        "reviews": 0 if current is None else current.reviews,
        "sentiment": {} if current is None else sentiment_of(current),
    }


def review_view(review: StoredReview) -> ReviewView:
    """Return a review as the API does."""
    return ReviewView(
        review_id=review.review_id,
        text=review.text,
        rating=review.rating,
        day=review.day,
        label=review.label,
        url=review.url,
    )
