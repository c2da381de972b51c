"""Commands and routes: on the store and by `API_URL`, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from scanner_support.places import Place, Scanning
from tests.support.processes import Processes

from headrace.server.listen import listening

CSV = "platform,product,name,price\nhwahae,1,Tea,100\nmusinsa,2,Shirt,200\n"


@pytest.mark.timeout(600)
async def test_commands_work_on_the_store_and_by_api_url(
    scanning: Scanning, place: Place, tmp_path: Path
) -> None:
    (tmp_path / "autumn.csv").write_text(CSV)

    async def run(environment: dict[str, str], *words: str, code: int = 0) -> str:
        with Processes(tmp_path) as processes:
            given = {"HEADRACE_BUNDLES": "scanner", **environment}
            command = processes.headrace("scanner", *words, **given)
            assert await command.ended(200.0) == code, command.said
            return command.said

    local = place.environment
    said = await run(local, "import", "autumn.csv", "--json")
    assert msgspec.json.decode(said) == {"set": "autumn", "new": 2, "known": 0}
    assert "cannot read nowhere.csv" in await run(local, "import", "nowhere.csv", code=2)
    await run(local, "scan", "hwahae", "--set", "autumn")
    await scanning.work()
    async with listening(scanning.app, host="127.0.0.1", port=0) as address:
        # It knows the server alone.
        remote = {"API_URL": address, "HEADRACE_URL": "sqlite:////nowhere/jobs.db"}
        said = await run(remote, "import", "autumn.csv", "--json")
        assert msgspec.json.decode(said) == {"set": "autumn", "new": 0, "known": 2}
        begun = msgspec.json.decode(await run(remote, "scan", "musinsa", "--json"))
        await scanning.work()
        found = msgspec.json.decode(await run(remote, "changes", "--json"))["changes"]
        assert {each["scan_id"] for each in found} >= {begun["runs"][0]["job_id"]}
        assert {each["field"] for each in found} == {"name", "price"}
        assert "completed, " in await run(remote, "platforms")


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("POST", "/scanner/scans", {"platform": "amazon"}, "use one of hwahae"),
        ("POST", "/scanner/scans", {"platform": "extract"}, "use one of hwahae"),
        (
            "POST",
            "/scanner/scans",
            {"platform": "kurly", "products": ["http://x/1"]},
            "not of kurly",
        ),
        ("POST", "/scanner/scans", {"platform": "kurly", "size": 3}, "size"),
        ("POST", "/scanner/scans", {"platform": "default", "products": ["7"]}, "needs a url"),
        ("POST", "/scanner/scans", {"platform": "kurly", "priority": 10**9}, "priority"),
        ("POST", "/scanner/extractions", {"type": "all"}, "use one of url_extraction"),
        ("PUT", "/scanner/sets/a", {"products": []}, "no products"),
        (
            "PUT",
            "/scanner/sets/a",
            {"products": [{"platform": "kurly"}]},
            "product 1: it has neither",
        ),
        (
            "PUT",
            "/scanner/sets/a",
            {"products": [{"platform": "kurly", "product": "1", "sale_status": "maybe"}]},
            "use one of on_sale",
        ),
        (
            "PUT",
            "/scanner/sets/a",
            {"products": [{"platform": "kurly", "product": "a\u0000b"}]},
            "printable",
        ),
        (
            "PUT",
            "/scanner/sets/a",
            {"products": [{"platform": "kurly", "product": "1", "price": -3}]},
            "price is -3.0",
        ),
        ("GET", "/scanner/scans?status=odd", None, "use one of running"),
        ("GET", "/scanner/products?limit=0", None, "give 1 to 500"),
        ("GET", "/scanner/changes?platform=amazon", None, "use one of hwahae"),
    ],
)
async def test_bad_input_gets_one_clear_error(
    scanning: Scanning, method: str, path: str, body: Any, said: str
) -> None:
    answer = await scanning.client.request(method, path, json=body)
    assert answer.status_code == 422, answer.text
    assert said in answer.text
    assert await scanning.scanner.sets() == []
    assert (await scanning.app.list(limit=5)).jobs == []


async def test_what_is_not_there_is_404(scanning: Scanning) -> None:
    for path in ("/scanner/scans/x", "/scanner/scans/x/report", "/scanner/scans/%00"):
        assert (await scanning.client.get(path)).status_code == 404
    assert (await scanning.client.delete("/scanner/sets/none")).status_code == 404


async def test_a_run_without_products_fails_once_and_says_why(scanning: Scanning) -> None:
    run = await scanning.execute("kurly-validation-v2", {"set": "no such set"})
    await scanning.work()
    job = await scanning.app.get(run)
    assert job.status == "failed"
    assert 'set "no such set" has nothing on kurly; import some' in str(job.error)
    shown = await scanning.get(run)
    assert (shown["status"], "has nothing on kurly" in shown["error"]) == ("failed", True)


async def test_private_addresses_are_not_asked_for_strangers(
    scanning: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning.service, "shops", None)
    scan = await scanning.scan("default", [f"{scanning.shops.url}/default/p/1"])
    assert scan["failed"] == 1
    assert "private address" in scan["items"][0]["error"]
    assert scanning.shops.visits == []
