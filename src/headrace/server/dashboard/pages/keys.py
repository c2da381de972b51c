"""Keys: who may use the API."""

from __future__ import annotations

from headrace.admin.keys import SCOPES
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit


@page("/keys", title="Keys", key="k", scope="admin", query=("revoked",))
async def keys(visit: Visit) -> Shown:
    """Show keys without their secrets; those that were revoked only when asked for."""
    visit.caller.check_unrestricted("keys")
    found = await visit.app.keys()
    revoked = [each for each in found if each.revoked_at is not None]
    all_of_them = visit.query.get("revoked") == "shown"
    shown = found if all_of_them else [each for each in found if each.revoked_at is None]
    return Shown(
        "system/keys.html",
        keys=shown,
        revoked=len(revoked),
        all_of_them=all_of_them,
        scopes=SCOPES,
        exist=bool(found),
    )
