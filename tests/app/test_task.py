from __future__ import annotations

import dataclasses
import functools
from datetime import UTC, datetime
from typing import Any

import msgspec
import pydantic
import pytest

import headrace
from headrace.errors import InvalidArguments, InvalidName, InvalidSetting, PayloadTooLarge


@pytest.fixture
def app() -> headrace.App:
    return headrace.App("sqlite://")


@dataclasses.dataclass
class Point:
    x: int


class Shop(msgspec.Struct):
    name: str


class Review(pydantic.BaseModel):
    stars: int = pydantic.Field(le=5)


def test_a_task_is_named_after_its_function_unless_told(app: headrace.App) -> None:
    @app.task
    async def plain() -> None: ...

    @app.task("other.name")
    async def named() -> None: ...

    @app.task(name="by.name", queue="mail")
    async def by_name() -> None: ...

    def direct() -> None: ...

    app.task(direct, queue="mail")  # type: ignore[call-overload]
    assert set(app.tasks) == {"plain", "other.name", "by.name", "direct"}
    assert {each.policy.queue for each in (by_name, app.tasks["direct"])} == {"mail"}
    assert app.find_task("plain") is plain
    assert named.name == "other.name"


def test_two_tasks_of_one_name_are_an_error(app: headrace.App) -> None:
    @app.task("x")
    async def one() -> None: ...

    with pytest.raises(InvalidSetting, match='two tasks are called "x"'):

        @app.task("x")
        async def two() -> None: ...


def test_typed_arguments_travel_as_json_and_come_back_typed(app: headrace.App) -> None:
    seen: list[Any] = []

    @app.task
    def handle(
        ctx: headrace.Context, point: Point, shop: Shop, review: Review, when: datetime
    ) -> None:
        seen.extend([point, shop, review, when])

    when = datetime(2026, 1, 2, tzinfo=UTC)
    job = handle.job(Point(1), Shop("물"), Review(stars=5), when=when)
    signature = handle.signature
    signature.call(None, signature.decode(job.args))
    assert seen == [Point(1), Shop("물"), Review(stars=5), when]


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({}, "missing required field `number`"),
        ({"number": "seven"}, "Expected `int`"),
        ({"number": 1, "extra": 2}, "unknown field `extra`"),
        ({"number": 1, "review": {"stars": 9}}, "stars"),
        ({"number": 1, "text": object()}, "object cannot be kept as JSON"),
        ({"number": 1, "text": "\ud800"}, "surrogates"),
    ],
)
def test_wrong_arguments_are_refused_at_enqueue(
    app: headrace.App, kwargs: dict[str, Any], words: str
) -> None:
    @app.task
    async def count(number: int, text: str = "", review: Review | None = None) -> None: ...

    with pytest.raises(InvalidArguments, match=words):
        count.job(**kwargs)


def test_positional_arguments_are_bound_by_name(app: headrace.App) -> None:
    @app.task
    async def add(a: int, b: int = 2, *, c: int = 3) -> None: ...

    assert add.job(1, 5).args == b'{"a":1,"b":5}'
    with pytest.raises(InvalidArguments, match="it takes 2"):
        add.job(1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(InvalidArguments, match="given twice"):
        add.job(1, a=2)  # type: ignore[misc]


def test_defaults_stay_with_the_handler(app: headrace.App) -> None:
    @app.task
    def greet(name: str = "world") -> str:
        return f"hello {name}"

    assert greet.job().args == b"{}"
    assert greet.signature.call(None, greet.signature.decode(b"{}")) == "hello world"
    assert greet("you") == "hello you"


def test_handlers_with_unnamed_arguments_are_refused(app: headrace.App) -> None:
    with pytest.raises(InvalidSetting, match="name its arguments"):

        @app.task
        async def anything(**kwargs: int) -> None: ...


def test_a_lane_must_read_the_handlers_own_arguments(app: headrace.App) -> None:
    with pytest.raises(InvalidSetting, match="user_id"):

        @app.task(lane="user:{user_id}")
        async def no_user(name: str) -> None: ...

    @app.task(lane=headrace.Lane("user:{user_id}", width=3))
    async def user(user_id: int = 9) -> None: ...

    job = user.job()
    assert (job.lane, job.width, job.hold) == ("user:9", 3, False)


def test_options_change_single_jobs(app: headrace.App) -> None:
    @app.task(queue="q", priority=1, retries=2, timeout=9)
    async def work(n: int) -> None: ...

    run_at = datetime(2030, 1, 1, tzinfo=UTC)
    job = work.options(
        queue="other", priority=5, run_at=run_at, key="k", lane="n:{n}", retries=0, timeout=None
    ).job(n=1)
    assert (job.queue, job.priority, job.run_at, job.key) == ("other", 5, run_at.timestamp(), "k")
    assert (job.lane, job.max_attempts, job.timeout) == ("n:1", 1, None)
    plain = work.job(n=1)
    assert (plain.queue, plain.priority, plain.max_attempts, plain.timeout) == ("q", 1, 3, 9)


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 1_001},
        {"priority": True},
        {"delay": -1},
        {"delay": float("nan")},
        {"delay": 1, "run_at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"run_at": datetime(2030, 1, 1)},
        {"timeout": 0},
        {"retries": -1},
    ],
)
def test_bad_options_are_refused(app: headrace.App, options: dict[str, Any]) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidSetting):
        work.options(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"qeue": "mail"}, 'unknown task option "qeue"; did you mean "queue"'),
        ({"retrys": 3}, 'unknown task option "retrys"; did you mean "retr'),
        ({"colour": 3}, 'unknown task option "colour"; known: .*timeout'),
        ({"timeout": "10m"}, "timeout must be more than 0 .* got '10m'"),
        ({"timeout": True}, "timeout must be"),
        ({"retries": "3"}, "retries must be a whole number from 0, got '3'"),
        ({"retries": True}, "retries must be"),
        ({"lane": 7}, "lane must be a template .* got 7"),
        ({"never_retry": 5}, "never_retry must be a list of exception classes, got 5"),
        ({"memory_limit": "1G", "isolate": "process"}, "memory_limit must be a number of bytes"),
        ({"queue": 5}, "queue name 5 is not valid"),
        ({"name": 5}, "task name 5 is not valid"),
    ],
)
def test_wrong_options_of_a_task_are_told_at_the_decorator(
    app: headrace.App, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(headrace.InvalidInput, match=words):
        app.task(**options)
    with pytest.raises(InvalidSetting, match="its name only by place, got also 'mail'"):
        app.task("send", "mail")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dealy": 5}, 'unknown job option "dealy"; did you mean "delay"'),
        ({"retries": "3"}, "retries must be between 0 and 10000, got '3'"),
        ({"timeout": "5"}, "timeout must be"),
        ({"lane": 7}, "lane must be a template"),
        ({"source": "me"}, "source must be one of api, cron, event, code, cli, workflow, got 'me'"),
        ({"meta": 5}, "meta must be names with values, got 5"),
        ({"meta": {"x": object()}}, "meta: object cannot be kept as JSON"),
    ],
)
async def test_wrong_options_of_a_job_are_told(
    app: headrace.App, options: dict[str, Any], words: str
) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidSetting, match=words):
        work.options(**options)
    with pytest.raises(InvalidSetting, match=words):
        await app.enqueue("work", **options)


def test_wrong_options_of_a_schedule_are_told(app: headrace.App) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidSetting, match='unknown schedule option "zone"'):
        app.schedule("@daily", zone="UTC")  # type: ignore[call-arg]
    with pytest.raises(InvalidSetting, match='unknown schedule option "paramss"; did you mean'):
        app.add_schedule(work, "@daily", paramss={})  # type: ignore[call-arg]
    with pytest.raises(InvalidSetting, match="needs an expression"):
        app.schedule(work)  # type: ignore[arg-type]


def test_a_job_that_would_forget_its_transaction_is_refused(app: headrace.App) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidSetting, match="outside of your transaction; use options"):
        work.options(conn=object()).job()


def test_bad_queue_and_key_names_are_refused(app: headrace.App) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidName, match="queue name"):
        work.options(queue="no spaces")
    with pytest.raises(InvalidName, match="key"):
        work.options(key="")


def test_a_payload_over_the_limit_is_refused() -> None:
    app = headrace.App("sqlite://", payload_limit=100)

    @app.task
    async def work(text: str) -> None: ...

    work.job("x" * 80)
    with pytest.raises(PayloadTooLarge, match="the limit is 100"):
        work.job("x" * 100)


@pytest.mark.parametrize(
    ("never", "remedy"),
    [
        ([ValueError("x")], "write ValueError"),
        ([int], "cannot be raised"),
        ([KeyError, 3], "got 3"),
        (["requests.Timeout"], "without a module"),
        ("ValueError", r"write \['ValueError'\]"),
        (ValueError, r"write \[ValueError\]"),
    ],
)
def test_what_is_never_retried_is_checked_when_a_task_is_made(
    app: headrace.App, never: Any, remedy: str
) -> None:
    with pytest.raises(InvalidSetting, match=f"never_retry.*{remedy}"):
        app.task(never_retry=never)


@pytest.mark.parametrize("retry", [3, headrace.RetryPolicy], ids=["a number", "a class"])
def test_how_often_to_retry_is_checked_when_a_task_is_made(app: headrace.App, retry: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"retry must be a headrace\.RetryPolicy"):
        app.task(retry=retry)
    for field in ("base", "factor", "maximum"):
        with pytest.raises(InvalidSetting, match=r"needs base|maximum must be"):
            headrace.RetryPolicy(**{field: float("nan")})  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="whole number"):
        headrace.RetryPolicy(retries=1.5)  # type: ignore[arg-type]


def test_a_handler_without_a_name_needs_one(app: headrace.App) -> None:
    with pytest.raises(InvalidSetting, match="give the task one"):
        app.task(functools.partial(print, "x"))


def test_the_public_names_are_exact() -> None:
    assert all(hasattr(headrace, name) for name in headrace.__all__)
    # Constants first, as ruff sorts them.
    in_order = sorted(headrace.__all__, key=lambda name: (not name.isupper(), name))
    assert in_order == headrace.__all__


def test_a_job_has_what_the_policy_says_now(app: headrace.App) -> None:
    @app.task(queue="q", priority=3, timeout=5, expires=60)
    async def changed() -> None: ...

    first = changed.job()
    changed.policy = msgspec.structs.replace(changed.policy, queue="other")
    second = changed.job()
    changed.max_attempts = 7
    third = changed.options().job()
    assert (first.queue, first.priority, first.timeout, first.expires_in) == ("q", 3, 5, 60)
    assert (second.queue, second.priority, second.max_attempts) == ("other", 3, first.max_attempts)
    assert (third.queue, third.priority, third.max_attempts) == ("other", 3, 7)
    assert len({first.id, second.id, third.id}) == 3
