"""For tests of programs that use Headrace.

    async def test_an_invoice_is_sent(headrace_app, headrace_run):      # fixtures of the plugin
        await place_order(customer_id=5)
        [job] = await enqueued(headrace_app, send_invoice, customer_id=5)
        await headrace_run(advance=3600)                                # with an hour of retries

`override` lends an App of your own to a test; the plugin's `headrace_app` does so by itself where
pytest's setting `headrace_app = "module:app"` names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.testing.overriding import override
    from headrace.testing.running import Runner, enqueued, run, run_blocking

__all__ = ["Runner", "enqueued", "override", "run", "run_blocking"]

_HOMES = {
    "enqueued": "running",
    "override": "overriding",
    "Runner": "running",
    "run": "running",
    "run_blocking": "running",
}


def __getattr__(name: str) -> Any:
    # The plugin is loaded by every test run of every project; its package has to be cheap.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
