"""Silence alerts, and test their receivers."""

from __future__ import annotations

from headrace.server.dashboard.action import Act, Done, action
from headrace.server.http.problems import invalid

# What a form offers, in seconds.
SPANS = {"1800": "30 minutes", "7200": "2 hours", "86400": "a day", "604800": "a week"}


@action("/alerts/silence", scope="admin")
async def silence(act: Act) -> Done:
    """Tell nobody of a rule for some time: of one subject, or of all."""
    act.caller.check_unrestricted("alerts")
    rule, chosen = act.form.get("rule", ""), act.form.get("for", "")
    if chosen not in SPANS:
        raise invalid("choose one of the times that the form offers", field="for", value=chosen)
    subject = act.form.get("subject", "") or None
    made = await act.app.silence_alert(
        rule,
        subject=subject,
        duration=float(chosen),
        reason=act.form.get("reason", "").strip() or None,
        by=act.caller.name,
    )
    await act.changed("alert.silence", rule, subject=subject, until=made.until)
    about = f" about {subject}" if subject else ""
    return Done(f"Nothing is told of {rule}{about} until {made.until:%Y-%m-%d %H:%M} UTC.")


@action("/alerts/unsilence", scope="admin")
async def unsilence(act: Act) -> Done:
    """End a silence."""
    act.caller.check_unrestricted("alerts")
    rule, subject = act.form.get("rule", ""), act.form.get("subject", "") or None
    await act.app.unsilence_alert(rule, subject=subject)
    await act.changed("alert.unsilence", rule, subject=subject)
    act.service.alerts.wake()
    return Done(f"{rule} is told of again.")


@action("/alerts/test", scope="admin")
async def test(act: Act) -> Done:
    """Send a test alert to a receiver."""
    act.caller.check_unrestricted("alerts")
    receiver = act.form.get("receiver", "")
    job = await act.app.test_receiver(receiver)
    await act.service.alerts.deliver()
    await act.changed("alert.test", receiver, job_id=job.id)
    return Done(f"A test is on its way to {receiver}.", to=act.url("/jobs", job.id))
