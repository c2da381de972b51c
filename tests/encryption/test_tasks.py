"""Which tasks are encrypted, what stays plain, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

import headrace
from headrace.model.sealed import key_of_args
from headrace.task.task import Task
from tests.encryption.conftest import K1, Make


class Card(msgspec.Struct):
    number: str


def app_with(**settings: Any) -> headrace.App:
    return headrace.App("sqlite://", encryption_keys=f"k1:{K1}", **settings)


def is_sealed(task: Task[..., Any], **arguments: Any) -> bool:
    return key_of_args(task.job(**arguments).args) is not None


def test_a_task_says_whether_it_is_encrypted() -> None:
    app = app_with()

    @app.task(encrypt=True)
    async def pay(card: str) -> None: ...

    @app.task
    async def greet(name: str) -> None: ...

    assert is_sealed(pay, card="4111")
    assert not is_sealed(greet, name="Ada")


def test_an_app_says_it_for_all_that_do_not() -> None:
    app = app_with(encrypt_all=True)

    @app.task(encrypt=False)
    async def greet(name: str) -> None: ...

    @app.task
    async def pay(card: str) -> None: ...

    assert is_sealed(pay, card="4111")
    assert not is_sealed(greet, name="Ada")


@pytest.mark.parametrize("wrong", ["yes", 1])
def test_other_values_are_refused(wrong: Any) -> None:
    app = app_with()
    with pytest.raises(headrace.InvalidSetting, match="encrypt must be True or False"):
        app.task("pay", encrypt=wrong)
    with pytest.raises(headrace.InvalidSetting, match="plain_lane must be True or False"):
        app.task("pay", plain_lane=wrong)


def test_a_task_with_chunks_cannot_be_encrypted() -> None:
    app = app_with()
    with pytest.raises(headrace.InvalidSetting, match="cannot be encrypted"):

        @app.task(chunk=5, encrypt=True)
        async def pay(chunk: headrace.Chunk[Card]) -> None: ...


def test_sealed_arguments_cannot_become_those_of_an_earlier_job() -> None:
    app = app_with()

    @app.task(encrypt=True)
    async def pay(card: str) -> None: ...

    with pytest.raises(headrace.InvalidSetting, match="sealed for one job"):
        pay.options(key="k", on_duplicate="debounce", delay=5).job(card="4111")
    assert pay.options(key="k", on_duplicate="replace").job(card="4111").policy is not None


def test_a_lane_must_not_show_arguments() -> None:
    app = app_with()
    told = r"its lane 'customer:\{customer\}' would store customer in plain.*plain_lane=True"
    with pytest.raises(headrace.InvalidSetting, match=told):

        @app.task("refused", encrypt=True, lane="customer:{customer}")
        async def refused(customer: str) -> None: ...

    @app.task(encrypt=True, lane="payments")
    async def pay(customer: str) -> None: ...

    assert pay.job(customer="42").lane == "payments"
    with pytest.raises(headrace.InvalidSetting, match=told):
        pay.options(lane="customer:{customer}")

    @app.task(encrypt=True, lane="customer:{customer}", plain_lane=True)
    async def seen(customer: str) -> None: ...

    job = seen.job(customer="42")
    assert job.lane == "customer:42"
    assert b"42" not in job.args[: job.args.index(b"data")]
    assert key_of_args(job.args) == "k1"


def test_a_rate_must_not_show_an_argument_as_cost() -> None:
    app = app_with()
    lane = headrace.Lane("payments", rate="10/m", cost="amount")
    with pytest.raises(headrace.InvalidSetting, match="would store amount in plain"):

        @app.task("refused", encrypt=True, lane=lane)
        async def refused(amount: int) -> None: ...

    @app.task(encrypt=True, lane=lane, plain_lane=True)
    async def seen(amount: int) -> None: ...

    assert seen.job(amount=3).cost == 3


def test_encrypting_all_tasks_is_refused_where_a_lane_shows_arguments() -> None:
    app = app_with(encrypt_all=True)
    with pytest.raises(headrace.InvalidSetting, match="encrypted, but its lane"):

        @app.task(lane="customer:{customer}")
        async def pay(customer: str) -> None: ...


def test_arguments_that_do_not_fit_are_not_quoted() -> None:
    app = app_with()

    @app.task(encrypt=True)
    async def pay(card: int) -> None: ...

    @app.task
    async def greet(name: int) -> None: ...

    with pytest.raises(headrace.InvalidArguments, match="it takes: card") as raised:
        pay.job(card="4111-secret")  # type: ignore[arg-type]
    assert "4111-secret" not in str(raised.value)
    with pytest.raises(headrace.InvalidArguments, match="Ada"):
        greet.job(name="Ada")  # type: ignore[arg-type]


async def test_what_stays_plain(here: str, make: Make) -> None:
    app = make(here)
    job = await app.tasks["pay"].options(key="order-7", meta={"user": "ada"}).enqueue(card="4111")
    [stored] = await app.engine.get([job.id])
    assert (stored.task, stored.key, stored.meta) == ("pay", "order-7", {"user": "ada"})
    assert b"4111" not in stored.args_json
    assert job.args == {"card": "4111"}


async def test_the_limit_is_that_of_the_plain_text(here: str, make: Make) -> None:
    app = make(here, payload_limit=1_000)
    await app.tasks["pay"].enqueue(card="x" * 950)
    with pytest.raises(headrace.PayloadTooLarge):
        await app.tasks["pay"].enqueue(card="x" * 1_001)


async def test_a_copy_has_a_seal_of_its_own(here: str, make: Make) -> None:
    app = make(here)
    job = await app.tasks["pay"].enqueue(card="4111")
    copy = await app.copy(job.id, {"amount": 5})
    assert copy.args == {"card": "4111", "amount": 5}
    [first, second] = await app.engine.get([job.id, copy.id])
    assert first.args_json != second.args_json
    with pytest.raises(headrace.MissingEncryptionKey):
        await make(here, None).copy(job.id)


async def test_files_come_with_a_sealed_job(here: str, make: Make) -> None:
    app = make(here)

    @app.task(encrypt=True)
    async def read(file: str, secret: str) -> None: ...

    job = await read.options(files={"file": ("a.txt", b"content")}).enqueue(secret="4111")
    assert job.args["secret"] == "4111"
    assert job.id in job.args["file"]
    # Files are not sealed.
    assert await app.artifacts.get(job.args["file"]) == b"content"


async def test_many_at_once(url: str, make: Make) -> None:
    app = make(url)
    pay = app.tasks["pay"]
    jobs = await app.enqueue_many(pay.job(card=str(number)) for number in range(250))
    assert [job.args["card"] for job in jobs] == [str(number) for number in range(250)]
    listed = await app.list(limit=1_000)
    assert sorted(int(job.args["card"]) for job in listed.jobs) == list(range(250))


def test_programs_that_encrypt_nothing_load_nothing() -> None:
    code = (
        "import sys, headrace; app = headrace.App('sqlite://'); app.task('a')(lambda: 1).job();"
        "print([m for m in sys.modules if m.startswith(('cryptography', 'headrace.encryption'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_extra_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "import headrace\n"
        "app = headrace.App('sqlite://', encryption={'k1': bytes(32)})\n"
        "app.task('a', encrypt=True)(lambda: 1).job()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "headrace[encryption]"' in done.stderr
