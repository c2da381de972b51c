"""How large the body of a request may be: of `POST /jobs`, of a batch, of a form with files."""

from __future__ import annotations

import msgspec

MEBIBYTE = 1_048_576

UPLOAD_LIMIT = 32 * MEBIBYTE
"""The most bytes of the files that come with one job, unless the server is told another limit."""
# A batch is stored in one transaction.
BATCH_LIMIT = 4 * MEBIBYTE
# What a request may have besides the arguments of its job, or besides its files.
SLACK = 65_536
META_LIMIT = 16_384
# Of a form with files.
MOST_FILES = 10
MOST_FIELDS = 20
# Of JSON in JSON: far below what the decoders of workers, tools and browsers can take.
DEEPEST = 100


class BodyLimits(msgspec.Struct, frozen=True):
    """The most bytes of a request with one job, of a batch of jobs, and of a form with files."""

    request: int
    batch: int
    form: int


def body_limits(*, payload_limit: int, upload_limit: int) -> BodyLimits:
    """Return the limits of a server: they follow from what a job and its files may have."""
    request = payload_limit + SLACK
    return BodyLimits(request=request, batch=max(request, BATCH_LIMIT), form=upload_limit + SLACK)
