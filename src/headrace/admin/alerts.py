"""The verbs of an App for alerts: rules, what fires, silences, and tests of receivers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headrace.admin.publishing import PublishingVerbs
from headrace.errors import InvalidInput, InvalidSetting
from headrace.model.names import check_text
from headrace.model.times import check_delay, check_moment, in_utc, moment_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from headrace.alerts.declared_rules import DeclaredAlerts
    from headrace.alerts.loop import AlertLoop
    from headrace.alerts.store import KeptRule
    from headrace.alerts.views import AlertViews
    from headrace.api_types.alerts import AlertRuleOptions, AlertRuleView, AlertView, SilenceView
    from headrace.model.alerts.rule import AlertRule
    from headrace.model.job import Job
    from headrace.task.app_like import AppLike


class AlertVerbs(PublishingVerbs):
    """Alerts. Their receivers are destinations."""

    _alert_loop: AlertLoop | None = None

    @functools.cached_property
    def _declared_alerts(self) -> DeclaredAlerts:
        from headrace.alerts.declared_rules import DeclaredAlerts  # noqa: PLC0415 - many have none

        return DeclaredAlerts(cast("AppLike", self))  # nothing but an App has these verbs

    @property
    def _alert_views(self) -> AlertViews:
        from headrace.alerts.views import AlertViews  # noqa: PLC0415

        # What is wrong with rules, a server in this process has found.
        found = None if self._alert_loop is None else self._alert_loop.evaluator.problems
        return AlertViews(cast("AppLike", self), found)

    def alert_loop(self) -> AlertLoop:
        """Return the loop that evaluates rules and delivers alerts. Every server runs one; start it
        to have the same without a server.
        """
        from headrace.alerts.loop import AlertLoop  # noqa: PLC0415

        host = cast("AppLike", self)
        self._alert_loop = AlertLoop(host, self._publishing, self._declared_alerts)
        return self._alert_loop

    # -- rules ---------------------------------------------------------------------------------

    def alert(
        self, name: str, kind: str, to: Sequence[str] | str, **options: Unpack[AlertRuleOptions]
    ) -> AlertRule:
        """Declare a rule in code: `app.alert("late", "queue_age", to="ops", above="10m")`. A server
        of this App stores it when it starts.
        """
        return self._declared_alerts.declare(name, {"kind": kind, "to": to, **options})

    async def alert_rules(self) -> Sequence[AlertRuleView]:
        """Return all rules, by name, with how many subjects they hold for now."""
        return await self._alert_views.rules()

    async def alert_rule(self, name: str) -> AlertRuleView:
        """Return one rule. Raises `UnknownAlertRule`."""
        return await self._alert_views.rule(name)

    async def put_alert_rule(
        self,
        name: str,
        kind: str,
        to: Sequence[str] | str,
        *,
        replace: bool = True,
        source: str = "app",
        **options: Unpack[AlertRuleOptions],
    ) -> AlertRuleView:
        """Add a rule, or change the one of this name."""
        from headrace.alerts.store import KeptRule  # noqa: PLC0415
        from headrace.model.alerts.rule import make_rule  # noqa: PLC0415

        receivers = to if isinstance(to, str) else list(to)
        rule = make_rule(name, {"kind": kind, "to": receivers, **options})
        now = self.clock.utcnow()

        def change(before: KeptRule | None) -> KeptRule:
            if before is None:
                return KeptRule(rule=rule, origin=source, created_at=now, changed_at=now)
            if not replace:
                raise InvalidSetting(
                    f'an alert rule "{name}" exists already; choose another name, or replace it '
                    "(--replace)"
                )
            return msgspec.structs.replace(before, rule=rule, changed_at=now)

        await self._alert_views.records.change(name, change)
        return await self.alert_rule(name)

    async def remove_alert_rule(self, name: str) -> None:
        """Remove a rule. Who was told that it fires is told that it is over."""
        await self._alert_views.records.remove(name)

    async def apply_alerts(self, path: Path) -> Sequence[str]:
        """Store the receivers and rules of a file, and remove those that it had before and has no
        more. Return the names of those that were changed. Raises `InvalidSetting` for a file with
        a problem, and changes nothing.
        """
        from headrace.alerts.file import read_alerts  # noqa: PLC0415

        file = read_alerts(path, now=self.clock.utcnow())
        if file.problems:
            raise InvalidSetting("\n".join(file.problems))
        return await self._declared_alerts.apply_file(file, remove=True)

    # -- alerts --------------------------------------------------------------------------------

    async def alerts(self) -> Sequence[AlertView]:
        """Return what fires, then what waits to, then what was over in the last day."""
        return await self._alert_views.alerts()

    async def silence_alert(
        self,
        rule: str,
        *,
        subject: str | None = None,
        duration: float | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> SilenceView:
        """Tell nobody of a rule, or of one subject of it, for `duration` seconds or `until` a time.
        Who was told before is told when it is over; what still fires at the end is told then.
        """
        from headrace.alerts.store import Silence  # noqa: PLC0415
        from headrace.alerts.views import silence_view  # noqa: PLC0415

        await self._alert_views.records.existing(rule)
        now = await self._engine.now()
        silence = Silence(
            rule=rule,
            subject=None if subject is None else check_text("subject", subject),
            until=_end(duration, until, now),
            at=moment_of(now),
            by=None if by is None else check_text("by", by),
            reason=None if reason is None else check_text("reason", reason),
        )
        await self._alert_views.records.silence(silence)
        return silence_view(silence)

    async def unsilence_alert(self, rule: str, *, subject: str | None = None) -> bool:
        """End a silence; return False if there was none. Raises `UnknownAlertRule`."""
        await self._alert_views.records.existing(rule)
        return await self._alert_views.records.unsilence(rule, subject)

    async def test_receiver(self, name: str) -> Job:
        """Send a test alert to one receiver, and return the job that delivers it. It is not tried
        again. Raises `UnknownDestination`.
        """
        from headrace.alerts.evaluate import event_of  # noqa: PLC0415
        from headrace.model.alerts.notice import AlertNotice  # noqa: PLC0415
        from headrace.model.ids import new_id  # noqa: PLC0415

        destination = await self._publishing.records.get(name)
        notice = AlertNotice(
            status="test",
            rule="test",
            kind="test",
            subject=name,
            severity="info",
            detail=f"a test of receiver {name!r}: alerts arrive here",
        )
        event = event_of(new_id(), notice, await self._engine.now())
        job = self._publishing.alert_job(destination, event)
        job.max_attempts, job.lane = 1, None
        return await cast("AppLike", self).enqueue_job(job)


def _end(duration: Any, until: datetime | None, now: float) -> datetime:
    if (duration is None) == (until is None):
        raise InvalidInput("a silence has a duration or an `until`, one of both")
    if until is None:
        seconds = check_delay(duration, "duration")
        if not seconds:
            raise InvalidInput("duration must be more than 0 seconds, got 0")
        return moment_of(now + seconds)
    if check_moment(until, "until") <= now:
        raise InvalidInput(f"until {until.isoformat()} has passed; choose a time to come")
    return in_utc(until)
