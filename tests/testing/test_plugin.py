"""The pytest plugin in test runs of its own, as a user's project has them."""

from __future__ import annotations

import subprocess
import sys

import pytest

# pytest-asyncio wants to be told both.
AUTO = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
SHOP = """
import headrace

app = headrace.App("sqlite:////nowhere/at/all/production.db")

@app.task
async def greet(name: str) -> str:
    return "hello " + name
"""


def test_the_fixtures_in_async_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from headrace.testing import enqueued

        async def test_one(headrace_app, headrace_run, headrace_clock):
            @headrace_app.task
            async def add(a: int, b: int) -> int:
                return a + b

            await add.options(delay=60).enqueue(a=1, b=2)
            assert len(await enqueued(headrace_app, add)) == 1
            assert await headrace_run() == []
            headrace_clock.advance(60)
            [job] = await headrace_run()
            assert job.result == 3

        @pytest.mark.parametrize("again", [1, 2])
        async def test_each_test_has_an_app_of_its_own(headrace_app, headrace_clock, again):
            assert headrace_app.tasks == {}
            assert headrace_clock.offset == 0
            assert await enqueued(headrace_app) == []
        """
    )
    result = pytester.runpytest_subprocess(*AUTO, "-W", "error")
    result.assert_outcomes(passed=3)


def test_an_app_that_the_settings_name(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(shop=SHOP)
    pytester.makeini("[pytest]\nheadrace_app = shop:app\npythonpath = .\n")
    pytester.makepyfile(
        """
        import shop

        async def test_one(headrace_app, headrace_run):
            assert headrace_app is shop.app
            await shop.greet.enqueue(name="ada")
            [job] = await headrace_run()
            assert job.result == "hello ada"

        def test_it_is_given_back():
            assert "production" in shop.app.settings.url
        """
    )
    pytester.runpytest_subprocess(*AUTO, "-W", "error").assert_outcomes(passed=2)


def test_a_fixture_of_the_projects_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(shop=SHOP)
    pytester.makeconftest(
        """
        import pytest
        import shop
        from headrace.testing import override

        @pytest.fixture
        def headrace_app():
            with override(shop.app) as app:
                yield app
        """
    )
    pytester.makepyfile(
        """
        import shop

        async def test_one(headrace_app, headrace_run, headrace_clock):
            assert headrace_clock is shop.app.clock
            await shop.greet.options(delay=5).enqueue(name="ada")
            [job] = await headrace_run(advance=5)
            assert job.result == "hello ada"
        """
    )
    pytester.makeini("[pytest]\npythonpath = .\n")
    pytester.runpytest_subprocess(*AUTO, "-W", "error").assert_outcomes(passed=1)


def test_without_a_plugin_for_async_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio

        def test_one(headrace_app, headrace_run):
            @headrace_app.task
            def add(a: int, b: int) -> int:
                return a + b

            async def story():
                await add.enqueue(a=1, b=2)
                return await headrace_run()

            [job] = asyncio.run(story())
            assert job.result == 3
        """
    )
    pytester.runpytest_subprocess("-p", "no:asyncio", "-W", "error").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("absent:app", "No module named 'absent'"),
        ("shop:other", "has no attribute 'other'"),
        ("shop:greet", "is a Task, not a headrace.App"),
    ],
)
def test_a_setting_that_names_nothing_is_told(
    pytester: pytest.Pytester, reference: str, message: str
) -> None:
    pytester.makepyfile(shop=SHOP)
    pytester.makeini(f"[pytest]\nheadrace_app = {reference}\npythonpath = .\n")
    pytester.makepyfile("def test_one(headrace_app): ...")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f'*headrace_app = "{reference}"*{message}*'])


def test_the_plugin_costs_a_project_next_to_nothing() -> None:
    program = (
        "import sys, pytest, headrace\n"
        "before = set(sys.modules)\n"
        "import headrace.testing.plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["headrace.testing", "headrace.testing.plugin"]
