"""Forms that make a job: what was typed, what is wrong with it, and what it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.api_types.requests import CopyRequest
from headrace.model.job import Job
from headrace.model.sealed import key_of_args
from headrace.server.dashboard.jobs.json_tree import TREE_BYTES, exact
from headrace.server.dashboard.jobs.query import explained
from headrace.server.http.problems import Refused, invalid
from headrace.task.redact import HIDDEN, Redactor

OPTIONS = ("queue", "delay", "key", "priority")
_SHORT = {"queue": str, "key": str, "delay": float, "priority": int}


class Typed(msgspec.Struct, frozen=True):
    """The options of a new job, as they were typed."""

    queue: str = ""
    delay: str = ""
    key: str = ""
    priority: str = ""

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Typed:
        """Return them as a form has them."""
        return cls(**{name: form.get(name, "").strip()[:600] for name in OPTIONS})

    def given(self) -> dict[str, Any]:
        """Return those that were given. Raises `Refused` for what is none."""
        found: dict[str, Any] = {}
        for name in OPTIONS:
            text = getattr(self, name)
            if text:
                try:
                    found[name] = msgspec.convert(text, _SHORT[name], strict=False)
                except msgspec.ValidationError:
                    raise invalid(
                        f"{name} must be a number, got {text[:40]!r}", field=name
                    ) from None
        try:
            # The rules of the API.
            msgspec.convert(found, CopyRequest)
        except msgspec.ValidationError as error:
            raise explained(error) from None
        return found


class HiddenField(msgspec.Struct, frozen=True):
    """An argument with a hidden value, which has to be given again. `text` has no such value."""

    name: str
    plain: bool
    text: str = ""


class CopyForm:
    """The arguments of a job, to be changed and enqueued as another one."""

    def __init__(self, job: Job, redactor: Redactor) -> None:
        self.job = job
        self._redactor = redactor
        # What is sealed is copied by the server, which does not show it.
        self.sealed = key_of_args(job.args_json)
        encoded = job.args_json if self.sealed is None else b"{}"
        values = msgspec.json.decode(encoded, type=dict[str, msgspec.Raw])
        hidden = [name for name, raw in values.items() if self._hidden(name, bytes(raw))]
        # Too large to be sent to and fro: only what differs is typed.
        self.changes_only = len(job.args_json) > TREE_BYTES or self.sealed is not None
        self.hidden = [self._field(name, bytes(values[name])) for name in hidden]
        self.text = "{}"
        if not self.changes_only:
            rest = {name: raw for name, raw in values.items() if name not in hidden}
            self.text = exact(msgspec.json.encode(rest), redactor)

    def _hidden(self, name: str, raw: bytes) -> bool:
        redactor = self._redactor
        if redactor.hides(name):
            return True
        return redactor.may_hide(raw) and redactor.json(raw) != raw and _changed(redactor, raw)

    def _field(self, name: str, raw: bytes) -> HiddenField:
        if self._redactor.hides(name):
            return HiddenField(name, raw[:1] == b'"')
        text = exact(raw, self._redactor) if len(raw) <= TREE_BYTES else ""
        return HiddenField(name, False, text)

    def request(self, form: Mapping[str, str], options: Mapping[str, Any]) -> CopyRequest:
        """Return what the form asks for. Raises `Refused` with the field that is wrong."""
        text = form.get("args", "").strip() or "{}"
        arguments = parsed("args", text)
        if not isinstance(arguments, dict):
            raise invalid("args must be a JSON object, like {}", field="args")
        for field in self.hidden:
            given = form.get(f"hidden-{field.name}", "")
            if not given.strip():
                raise invalid(
                    f"{field.name} has a hidden value: fill it in again", field=field.name
                )
            value = given if field.plain else parsed(field.name, given, secret=True)
            whole = msgspec.json.encode({field.name: value})
            if HIDDEN in self._redactor.secrets(whole):
                raise invalid(
                    f"{field.name} still has {HIDDEN} in it: fill in what is hidden",
                    field=field.name,
                )
            arguments[field.name] = value
        return CopyRequest(args=arguments, **options)

    @property
    def base(self) -> Job:
        """Return the job whose arguments are the base: none of them, where all were typed."""
        return self.job if self.changes_only else msgspec.structs.replace(self.job, args_json=b"{}")


def _changed(redactor: Redactor, raw: bytes) -> bool:
    """Return whether something is hidden, not only written in another way."""
    value = msgspec.json.decode(redactor.json(raw))
    return bool(value != msgspec.json.decode(raw))


def parsed(name: str, text: str, *, secret: bool = False) -> Any:
    """Return JSON that was typed. Raises `Refused` that names the field and the place."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError as error:
        shown = "" if secret else f", got {text[:40]!r}"
        raise invalid(f"{name} is not JSON: {error}{shown}", field=name) from None


def named(refusal: Refused) -> tuple[str, str | None]:
    """Return what is wrong in words, and the field."""
    problem = refusal.problem
    return problem.detail, problem.field
