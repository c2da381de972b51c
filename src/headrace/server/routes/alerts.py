"""Alerts: rules, what fires, silences, and tests of receivers, which are destinations."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.alerts import (
    AlertRuleRemoved,
    AlertRuleRequest,
    AlertRuleView,
    AlertView,
    SilenceEnded,
    SilenceRequest,
    SilenceView,
    UnsilenceRequest,
)
from headrace.api_types.job import JobBody
from headrace.api_types.requests import NAME, EmptyRequest
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)

Name = Annotated[str, Path(pattern=NAME)]
WHAT = "alerts"


@reading("GET /alerts", "List alerts", page("alerts", AlertView), name="find")
async def find_alerts(call: Call) -> Response:
    """What fires, then what waits to, then what was over in the last day."""
    return listed("alerts", await call.unrestricted(WHAT).app.alerts())


@reading("GET /alert-rules", "List alert rules", page("alert_rules", AlertRuleView))
async def find_rules(call: Call) -> Response:
    """With how many subjects each holds for, and what is wrong with it."""
    return listed("alert_rules", await call.unrestricted(WHAT).app.alert_rules())


@reading("GET /alert-rules/{name}", "Show an alert rule", AlertRuleView)
async def show_rule(call: Call, name: Name) -> Response:
    """One rule, with its silences."""
    return answer(await call.unrestricted(WHAT).app.alert_rule(name))


@steering("PUT /alert-rules/{name}", "Add or change an alert rule", AlertRuleView, AlertRuleRequest)
async def put_rule(call: Call, name: Name) -> Response:
    """Every server evaluates it within seconds."""
    service = call.unrestricted(WHAT)
    asked = await read_json(call, AlertRuleRequest)
    made = await service.app.put_alert_rule(name, source="api", **msgspec.structs.asdict(asked))
    await call.changed("alert-rule.put", name, kind=asked.kind)
    service.alerts.wake()
    return answer(made)


@steering("DELETE /alert-rules/{name}", "Remove an alert rule", AlertRuleRemoved)
async def remove_rule(call: Call, name: Name) -> Response:
    """Who was told that it fires is told that it is over."""
    service = call.unrestricted(WHAT)
    await service.app.remove_alert_rule(name)
    await call.changed("alert-rule.remove", name)
    service.alerts.wake()
    return answer(AlertRuleRemoved(name))


@steering("POST /alert-rules/{name}/silence", "Silence an alert rule", SilenceView, SilenceRequest)
async def silence_rule(call: Call, name: Name) -> Response:
    """For some seconds (`for`) or `until` a time, for one subject or all."""
    app = call.unrestricted(WHAT).app
    asked = await read_json(call, SilenceRequest)
    silence = await app.silence_alert(
        name,
        subject=asked.subject,
        duration=asked.duration,
        until=asked.until,
        reason=asked.reason,
        by=call.caller.name,
    )
    await call.changed("alert.silence", name, subject=asked.subject, until=silence.until)
    return answer(silence)


@steering(
    "POST /alert-rules/{name}/unsilence",
    "End the silence of an alert rule",
    SilenceEnded,
    UnsilenceRequest,
)
async def unsilence_rule(call: Call, name: Name) -> Response:
    """What still fires is told at once."""
    service = call.unrestricted(WHAT)
    asked = await read_optional_json(call, UnsilenceRequest)
    ended = await service.app.unsilence_alert(name, subject=asked.subject)
    await call.changed("alert.unsilence", name, subject=asked.subject)
    service.alerts.wake()
    return answer(SilenceEnded(name, asked.subject, ended))


@steering(
    "POST /destinations/{name}/test-alert",
    "Send a test alert to a receiver",
    JobBody,
    EmptyRequest,
    status=202,
)
async def test_receiver(call: Call, name: Name) -> Response:
    """The answer is the job that delivers it, which is not tried again."""
    service = call.unrestricted(WHAT)
    await read_optional_json(call, EmptyRequest)
    job = await service.app.test_receiver(name)
    await service.alerts.deliver()
    await call.changed("alert.test", name, job_id=job.id)
    return answer(service.answers.job(job), 202)
