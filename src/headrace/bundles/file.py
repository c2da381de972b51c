"""What a route of a bundle returns to send a stored file."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.model.artifact import Artifact


@dataclass(frozen=True, slots=True)
class File:
    """A file of a job as the answer to a request: whole, or the range that was asked for, with its
    checksum as ETag, as an attachment of its own name. It is refused with 404 if it is gone.

    Return it from a route for GET, and from one for HEAD at the same path.
    """

    artifact: Artifact
