"""Workers: who is there, what each does, and what a lost one held."""

from __future__ import annotations

from headrace.model.job import JobFilter
from headrace.monitor.counters.worker_metrics import KIND, encode
from headrace.telemetry import Telemetry
from tests.dashboard.conftest import MakeSite, Site, Windows, is_live
from tests.dashboard.visits import visitor, words
from tests.server.conftest import a_key, run_jobs
from tests.support.verbs import LEASE, a_worker, claim, enqueue, fail

HOSTILE = "<script>alert(1)</script>\u202e\U0001f600"


async def count(site: Site, name: str, **fields: int) -> None:
    """What a worker has published of itself."""
    counted = Telemetry(claimed=5, **fields)  # type: ignore[arg-type]
    counted.of("send", "mail").completed = 4
    counted.of("scan", "scans").count("failed")
    await site.app.engine.record_put(KIND, name, encode(counted))


async def a_scene(site: Site) -> tuple[str, str]:
    """One worker that is lost and held a job, and one that lives and serves mail."""
    engine = site.app.engine
    for _ in range(2):
        await enqueue(engine, queue="scans", task="scan")
    lost = await a_worker(engine, "gone", queues=("scans",), host=HOSTILE)
    [job, _] = await claim(engine, lost, 2)
    await fail(engine, job)
    site.app.clock.advance(LEASE + 60)
    alive = await a_worker(engine, "here", queues=("mail",), tasks=("send",), version="9.9")
    await enqueue(engine, queue="mail", task="send")
    await claim(engine, alive)
    await count(site, "here", blocks=2, block_seconds=3)
    return lost, alive


async def test_the_list_says_who_is_lost_and_what_it_held(site: Site) -> None:
    await a_scene(site)
    async with visitor(site) as who:
        page = await who.sees("/workers", "here here, pid 1 healthy 0 of 10 mail")
        said = words(page)
        assert "Worker 'gone' is lost, last seen at" in said
        assert "it holds 1 job (scan)" in said
        assert "/ui/jobs?worker=gone&amp;status=running" in page
        assert "2 \N{MULTIPLICATION SIGN} 3.0 s" in said
        assert "different versions" not in said
        assert "<script>alert" not in page
        await a_worker(site.app.engine, "newer", version="10.0")
        await who.sees("/workers", "Workers run different versions: 10.0 (1), 9.9 (1).")
        only = words(await who.get("/workers?queue=mail"))
        assert "gone lost" not in only


async def test_an_empty_list_says_what_to_do(site: Site) -> None:
    async with visitor(site) as who:
        assert "No worker is here. Start one with: headrace worker" in await who.words("/workers")


async def test_one_that_lives(site: Site) -> None:
    _, alive = await a_scene(site)
    async with visitor(site) as who:
        await who.sees("/workers", "here here, pid 1")
        said = await who.words(f"/workers/{alive}")
    assert "Worker here" in said
    assert "Version 9.9" in said
    assert "Tasks send Holds" in said
    assert "Jobs claimed 5" in said
    assert "Its event loop was blocked 2 times, 3.0 s in all" in said
    # What it runs, and what it did by task.
    assert "Runs now Running jobs Job Queue Since Progress send" in said
    assert "send mail 4 0 \N{EN DASH} \N{EN DASH}" in said
    assert "scan scans 0 1 failed" in said


async def test_one_that_is_lost(site: Site) -> None:
    lost, _ = await a_scene(site)
    async with visitor(site) as who:
        await who.sees("/workers", "here here, pid 1")
        page = await who.get(f"/workers/{lost}")
        said = words(page)
        assert (
            f"It is lost. Another worker takes over what it held. Look at process 1 on {HOSTILE}"
            in said
        )
        assert "<script>alert" not in page
        assert "Held when it was lost Running jobs Job Queue Since Progress scan" in said
        assert "Last errors Last errors Job Status Error When scan" in said
        assert "failed ValueError it broke" in said
        again = await a_worker(site.app.engine, "gone", queues=("scans",))
        await who.sees(f"/workers/{lost}", "a worker of the same name has taken its place")
        await who.get(f"/workers/{again}")
        assert "There is no such worker" in await who.get("/workers/nobody", 404)
        await who.get("/workers/foo%2Fbar", 404)


async def test_hidden_values_are_not_in_errors(site: Site) -> None:
    await site.app.enqueue("broken", {"password": "hunter22"})
    await run_jobs(site.app)
    [job] = (await site.app.engine.list_jobs(JobFilter(), limit=1)).jobs
    worker = await a_worker(site.app.engine, job.worker or "")
    async with visitor(site) as who:
        await who.sees("/workers", job.worker or "")
        page = await who.sees(f"/workers/{worker}", "cannot log in with [redacted]")
    assert "hunter22" not in page


async def test_a_key_for_one_queue_sees_no_trace_of_others(make_site: MakeSite) -> None:
    site = await make_site()
    lost, alive = await a_scene(site)
    both = await a_worker(site.app.engine, "both", queues=("mail", "scans"), tasks=("scan", "send"))
    await count(site, "both")
    async with visitor(site, await a_key(site.app, "read", queues=["mail"])) as who:
        page = await who.sees("/workers", "both")
        assert "scan" not in page
        assert "gone" not in page
        for worker in (alive, both):
            page = await who.get(f"/workers/{worker}")
            assert "send mail 4" in words(page)
            assert "scan" not in page
        await who.get(f"/workers/{lost}", 404)
        await who.get("/workers?queue=scans", 403)


async def test_in_a_browser(site: Site, windows: Windows) -> None:
    _, alive = await a_scene(site)
    page = await windows.open(f"{site.base}/workers")
    await page.wait_for_selector(f"#worker-{alive}")
    await is_live(page)
    # By keyboard: the first row, and into it.
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#live-worker")
    await is_live(page)
