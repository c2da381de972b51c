"""What a route of a bundle raises to refuse a request."""

from __future__ import annotations

from headrace.errors import HeadraceError


class Refusal(HeadraceError):
    """A request that is refused: the server answers with a problem document of this status.

    `word` is the last part of its type, such as `document-not-found`. Every other error of
    Headrace has a status of its own: `InvalidInput` 422, `JobNotFound` 404, `JobConflict` 409.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        word: str | None = None,
        field: str | None = None,
        value: object = None,
        remedy: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.word = word or _WORDS.get(status, "bad-request" if status < 500 else "server-error")
        self.field = field
        self.value = value
        self.remedy = remedy
        self.headers = headers


_WORDS = {
    400: "bad-request",
    403: "forbidden",
    404: "not-found",
    409: "conflict",
    413: "payload-too-large",
    415: "unsupported-media-type",
    416: "range-not-satisfiable",
    422: "invalid-input",
    429: "too-many-requests",
    503: "unavailable",
}
