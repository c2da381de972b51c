"""`headrace breakers`: list, open and close."""

from __future__ import annotations

from tests.cli.conftest import Cli

CALLS = """
import headrace

app = headrace.App()


@app.task(breaker=headrace.Breaker(failures=3, within=60, pause=30))
async def call() -> None: ...
"""


def test_they_are_opened_listed_and_closed(cli: Cli) -> None:
    (cli.folder / "calls.py").write_text(CALLS)
    assert cli("breakers", "list", "--json").json == {"breakers": []}
    refused = cli("breakers", "open", "default", "task:call", code=2)
    assert "--app" in refused.err
    opened = cli(
        *("breakers", "open", "default", "task:call", "--app", "calls"),
        *("--for", "10m", "--reason", "they deploy"),
    )
    assert opened.code == 0, opened
    assert "The breaker of default/task:call is open; one is tried in" in opened.out
    listed = cli("breakers", "list")
    assert "they deploy" in listed.out
    assert "LANE" in listed.out
    [shown] = cli("breakers", "list", "--json").json["breakers"]
    assert (shown["lane"], shown["pause"]) == ("task:call", 600)
    assert "circuit breaker" in cli("status").out
    assert "is closed" in cli("breakers", "close", "default", "task:call").out
    assert "was not open" in cli("breakers", "close", "default", "task:call").out
