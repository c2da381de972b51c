"""A visit: one caller looks at one page. What it asks for, and what it may see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from urllib.parse import quote, urlencode

from starlette.datastructures import QueryParams

from headrace.admin.keys import SCOPES
from headrace.api_types.requests import Scope
from headrace.app import App
from headrace.model.job import Job
from headrace.server.auth.caller import Caller
from headrace.server.auth.reach import Reach
from headrace.server.http.problems import forbidden, invalid
from headrace.server.service import Service
from headrace.suggest import did_you_mean
from headrace.task.redact import Redactor

Parameter = str | int | float | Iterable[str] | None


class Visit:
    """What a page is given, and what templates ask."""

    def __init__(
        self,
        *,
        service: Service,
        caller: Caller,
        root: str,
        path: str,
        params: Mapping[str, str] | None = None,
        query: QueryParams | None = None,
    ) -> None:
        self.service = service
        self.caller = caller
        self.root = root
        self.path = path
        self.params = params or {}
        self.query = query or QueryParams()
        # Somebody waits for the whole page. Otherwise its open stream looks.
        self.opens = False

    @property
    def app(self) -> App:
        """The App whose jobs are shown."""
        return self.service.app

    @property
    def now(self) -> datetime:
        """The time of the engine."""
        return self.app.clock.utcnow()

    @property
    def redactor(self) -> Redactor:
        """Hides the values of secret fields in what people see."""
        return self.service.answers.redactor

    @property
    def reach(self) -> Reach:
        """What this caller may see, name and change."""
        return Reach(self.service, self.caller)

    def task_names(self) -> list[str]:
        """Return the tasks that a filter can be about. Their names may tell a key for some queues
        what the others do.
        """
        return list(self.reach.tasks())

    async def job(self, job_id: str) -> Job:
        """Return the job of this id, if this caller may see it."""
        return self.reach.shown(await self.service.reader.get(job_id))

    async def own_job(self, job_id: str) -> Job:
        """Return the job of this id, if this caller may change it."""
        return self.reach.check_own(await self.job(job_id))

    async def rows(self, jobs: Sequence[Job]) -> list[Job]:
        """Return brief jobs as this caller may see them, without those that it may not see."""
        engine = self.app.engine
        return await self.service.answers.clean(engine, await self.reach.visible(jobs))

    def may(self, scope: Scope) -> bool:
        """Return whether the caller may do what needs this scope."""
        return SCOPES.index(self.caller.scope) >= SCOPES.index(scope)

    def check(self, scope: Scope) -> None:
        """Refuse a caller who lacks the scope."""
        if not self.may(scope):
            raise forbidden(
                f"this needs a key with scope {scope}, but yours has {self.caller.scope}",
                f"sign in with another; make one with: headrace keys create --scope {scope}",
            )

    def check_query(self, known: Iterable[str]) -> None:
        """Refuse unknown parameters: a misspelt filter must not show everything."""
        known = set(known)
        for name in self.query:
            if name not in known:
                detail = f"unknown parameter; {did_you_mean(name, known)}"
                raise invalid(detail, field=name[:60])

    # -- links ---------------------------------------------------------------------------------

    @property
    def here(self) -> str:
        """Return this page with its query, below the dashboard. Forms come back to it."""
        return quote(self.path) + (f"?{self.query}" if self.query else "")

    def url(self, path: str, *parts: str, **query: Parameter) -> str:
        """Return a link to a page: `url("/queues", "mail", status="failed")`.

        Each of the `parts` is one segment, whatever it has in it. None leaves a parameter out.
        """
        segments = "".join("/" + quote(str(part), safe="") for part in parts)
        return self.root + quote(path) + segments + _encoded(query)

    def api(self, path: str, *parts: str, **query: Parameter) -> str:
        """Return a link to a path of the HTTP API."""
        segments = "".join("/" + quote(str(part), safe="") for part in parts)
        return self.root.removesuffix("/ui") + quote(path) + segments + _encoded(query)

    def again(self, **changes: Parameter) -> str:
        """Return a link to this page with some parameters changed, from its beginning."""
        query: dict[str, Parameter] = {
            name: self.query.getlist(name) for name in self.query if name != "cursor"
        }
        return self.root + quote(self.path) + _encoded(query | changes)


def _encoded(query: Mapping[str, Parameter]) -> str:
    pairs = [
        (name, str(each))
        for name, value in query.items()
        if value is not None
        for each in ([value] if isinstance(value, str | int | float) else value)
    ]
    return f"?{urlencode(pairs)}" if pairs else ""
