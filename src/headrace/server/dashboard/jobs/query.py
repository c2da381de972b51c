"""Filters of jobs in the address of a page, by the names that the API has."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import msgspec

from headrace.api_types.requests import FilterRequest
from headrace.model.job import JobFilter
from headrace.server.dashboard.visit import Parameter, Visit
from headrace.server.filters import body_filter
from headrace.server.http.problems import Refused, invalid

# Those that may be given several times.
SEVERAL = ("status", "queue", "task", "error_type")
TIMES = ("since", "until", "finished_since", "finished_until")
FILTERS = tuple(FilterRequest.__struct_fields__)
# What stands on a chip, where the name in the address is not plain.
WORDS = {
    "error_type": "error",
    "since": "created after",
    "until": "created before",
    "finished_since": "finished after",
    "finished_until": "finished before",
    "fingerprint": "kind of error",
    "parent": "children of",
}


class JobQuery:
    """Which jobs a page is about."""

    def __init__(self, visit: Visit, names: tuple[str, ...] = FILTERS) -> None:
        self.visit = visit
        # An empty field of a form is no filter.
        given = {name: [each for each in visit.query.getlist(name) if each] for name in names}
        self.given = {name: values for name, values in given.items() if values}
        for name in self.given.keys() & set(TIMES):
            self.given[name] = [typed_time(each, visit.now) for each in self.given[name]]
        fields: dict[str, Any] = {
            name: values if name in SEVERAL else values[0] for name, values in self.given.items()
        }
        try:
            self.asked = msgspec.convert(fields, FilterRequest, strict=False)
        except msgspec.ValidationError as error:
            raise explained(error) from None
        wanted = body_filter(self.asked) if fields else JobFilter()
        self.wanted = visit.caller.narrowed(wanted)
        mark = self.asked.fingerprint
        self.fingerprint = None if mark is msgspec.UNSET else mark

    @property
    def fields(self) -> dict[str, Parameter]:
        """Return the filters for a link or a form."""
        return dict(self.given)

    def chips(self) -> list[tuple[str, str, str]]:
        """Return each filter that is set, with a link to the page without it. Statuses are tabs."""
        return [
            (WORDS.get(name, name), value, self.without(name, value))
            for name, values in self.given.items()
            if name != "status"
            for value in values
        ]

    def without(self, name: str, value: str) -> str:
        """Return this page without one value of a filter."""
        return self.visit.again(**{name: [each for each in self.given[name] if each != value]})


def typed_time(text: str, now: datetime) -> str:
    """Return a time that people typed as the API wants it: "02:30" is the last time that it was so,
    and without a zone it is in UTC. What cannot be understood stays as it is.
    """
    try:
        if len(text) <= len("02:30:00"):
            moment = datetime.combine(now.date(), time.fromisoformat(text), UTC)
            moment -= timedelta(days=moment > now)
        else:
            moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def explained(error: msgspec.ValidationError) -> Refused:
    """Return the refusal of a field that does not fit."""
    text = str(error)
    detail, _, place = text.partition(" - at `$.")
    return invalid(detail[:1].lower() + detail[1:], field=place.rstrip("`").split("[")[0] or None)
