"""Make and revoke keys."""

from __future__ import annotations

from headrace.admin.keys import SCOPES
from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.page import Shown
from headrace.server.http.problems import invalid


@action("/keys", scope="admin")
async def create(act: Act) -> Shown:
    """Make a key, and show its secret this once."""
    act.caller.check_unrestricted("keys")
    name = act.form.get("name", "").strip()
    if not name:
        raise invalid("a key needs a name, so that people know later what it is for", field="name")
    scope = act.form.get("scope", "read")
    if scope not in SCOPES:
        raise invalid(f"scope must be one of {', '.join(SCOPES)}", field="scope")
    made = await act.app.create_key(
        name=name,
        scope=scope,
        user=act.form.get("user", "").strip() or None,
        queues=act.form.get("queues", "").replace(",", " ").split(),
        rate=_rate(act.form.get("rate", "").strip()),
    )
    await act.changed("key.create", made.id, name=made.name, scope=made.scope)
    return Shown("system/new_key.html", title="A new key", new=made)


@action("/keys/{key_id}/revoke", scope="admin")
async def revoke(act: Act) -> Done:
    """Revoke a key for good."""
    act.caller.check_unrestricted("keys")
    key = await act.app.revoke_key(act.params["key_id"])
    await act.changed("key.revoke", key.id, name=key.name)
    return Done(f"Key {key.name} is revoked. Its sessions and streams end within seconds.")


def _rate(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise invalid("rate must be a number of requests a second", field="rate") from None
