"""A script becomes one audible file with one row; the file lives as long as its row."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from speech_app.conftest import Make
from speech_support.listening import FILLED_SECONDS, hear
from speech_support.making import Made, a_local_script
from speech_support.speech_server import SpeechServer

import headrace
from headrace import JobConflict, JobFilter, testing
from headrace_speech.dialogues import DialogueFilter
from headrace_speech.pipeline import EVENT
from headrace_speech.script import ScriptRefused
from headrace_speech.service import OWNER
from headrace_speech.store.records import AudioFilter, Stored
from headrace_speech.store.repository import AudioRepository
from headrace_speech.tidy import tidy

LONG = 120.0


async def spoken(made: Made) -> None:
    await headrace.JobOrchestrator(made.app, name="steady").run_until_idle()


async def content(made: Made, audio_file_id: str) -> bytes:
    return b"".join([piece async for piece in made.dialogues.content(audio_file_id)])


async def kept(made: Made) -> list[str]:
    return [file.path for file in (await made.app.artifacts.kept(OWNER)).files]


async def test_a_script_becomes_one_file(make: Make) -> None:
    async with make() as made:
        script = a_local_script(
            "안녕하세요, 반갑습니다.", "Hello, nice to meet you.", "네, 저도요."
        )
        accepted = await made.dialogues.hand_in(script, user="ada")
        assert accepted.status == "pending"
        job_id = accepted.job_id
        await spoken(made)
        view = await made.dialogues.get(job_id)
        assert view is not None
        assert (view.status, view.retry_count, view.error_message) == ("completed", 0, None)
        row = await made.dialogues.audio(str(view.audio_file_id))
        assert row is not None
        assert row.path == f"storage/local/{view.audio_file_id}.mp3"
        assert (row.user, row.provider, row.job_id) == ("ada", "local", job_id)
        audio = await content(made, row.audio_file_id)
        assert (row.bytes, row.checksum) == (len(audio), hashlib.sha256(audio).hexdigest())
        heard = hear(audio)
        turns = await made.dialogues.turns(job_id)
        assert turns is not None
        lengths = [turn.seconds or 0 for turn in turns]
        assert heard.seconds == pytest.approx(sum(lengths) + 2 * 0.4, abs=FILLED_SECONDS)
        assert row.seconds == pytest.approx(sum(lengths) + 2 * 0.4, abs=0.01)
        assert heard.loudness == pytest.approx(-20, abs=1.5)
        assert heard.silent_share < 0.4
        [event] = (await made.app.list(JobFilter(tasks=("headrace.publish",)))).jobs
        assert EVENT in str(event.args)
        assert str(view.audio_file_id) in str(event.args)
        # Its job goes, and it stays; then its row goes, and it does not.
        await made.prune()
        shown = await made.dialogues.get(job_id)
        assert shown is not None
        assert (shown.status, shown.audio_file_id) == ("completed", row.audio_file_id)
        assert await content(made, row.audio_file_id) == audio
        assert await kept(made) == [row.artifact]
        assert await made.dialogues.delete_audio(row.audio_file_id)
        assert await kept(made) == []
        with pytest.raises(headrace.ArtifactNotFound):
            await made.app.artifacts.get(row.artifact)
        assert await made.dialogues.get(job_id) is None
        assert not await made.dialogues.delete_audio(row.audio_file_id)


async def test_a_retry_speaks_no_finished_turn_again(make: Make, server: SpeechServer) -> None:
    clock = headrace.Clock()
    async with make(clock=clock) as made:
        server.failing = {"two": 2}
        job_id = await made.hand_in("one", "two", "three", format="wav")
        await testing.run(made.app, advance=LONG)
        view = await made.dialogues.get(job_id)
        assert view is not None
        assert (view.status, view.retry_count) == ("completed", 2)
        assert [server.asked(text) for text in ("one", "two", "three")] == [1, 3, 1]
        heard = hear(await content(made, str(view.audio_file_id)))
        expected = sum(len(text) * 0.01 for text in ("one", "two", "three")) + 2 * 0.4
        assert heard.seconds == pytest.approx(expected, abs=0.01)
        # The tones of the server are louder: -13.5 dB.
        assert heard.loudness == pytest.approx(-20, abs=1.5)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
class TestOnOneEngine:
    """What does not depend on where jobs are."""

    async def test_what_is_refused_is_not_stored(self, make: Make, server: SpeechServer) -> None:
        async with make() as made:
            wrong: list[dict[str, Any]] = [
                {"provider": "nobody"},
                {"voice_assignments": {"Ann": "alloy"}},
                {"voice_assignments": {"Ann": "alloy", "Bob": "unknown"}},
                {"turns": []},
            ]
            for fields in wrong:
                with pytest.raises(ScriptRefused):
                    await made.hand_in("one", "two", **fields)
            with pytest.raises(ScriptRefused, match="does not have"):
                await made.dialogues.hand_in(a_local_script("one", "two", voices=("ko", "xx")))
            assert (await made.app.list()).jobs == []
            assert server.requests == []

    async def test_a_turn_that_cannot_be_heard_fails_once(self, make: Make) -> None:
        async with make() as made:
            accepted = await made.dialogues.hand_in(a_local_script("안녕", "..."))
            await spoken(made)
            view = await made.dialogues.get(accepted.job_id)
            assert view is not None
            assert (view.status, view.retry_count, view.audio_file_id) == ("failed", 0, None)
            assert 'turn 2 of 2 ("Bob"): nothing can be heard of "..."' in str(view.error_message)
            assert await kept(made) == []

    async def test_a_job_that_was_enqueued_by_others_is_checked_too(self, make: Make) -> None:
        async with make() as made:
            script = {"turns": [{"role": "A", "text": "a"}], "voice_assignments": {"A": "xx"}}
            args = {"user": "ada", "script": script}
            job = await made.app.enqueue("speech.dialogue", args)
            await spoken(made)
            failed = await made.app.get(job.id)
            assert (failed.status, failed.attempt) == ("failed", 1)
            assert "does not have" in str(failed.error)

    async def test_a_deleted_job_is_gone_and_enters_nothing(
        self, make: Make, server: SpeechServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with make() as made:
            waiting = await made.hand_in("never spoken")
            assert await made.dialogues.delete(waiting)
            assert await made.dialogues.get(waiting) is None
            assert not await made.dialogues.delete(waiting)
            await spoken(made)
            assert server.requests == []
            enter, late = AudioRepository.enter, []

            async def deleted_meanwhile(self: AudioRepository, row: Any) -> Stored:
                late.append(row)
                await self.delete(row.job_id)
                return await enter(self, row)

            monkeypatch.setattr(AudioRepository, "enter", deleted_meanwhile)
            job_id = await made.hand_in("one")
            await spoken(made)
            assert (await made.app.get(job_id)).status == "failed"
            assert await kept(made) == []
            with pytest.raises(headrace.ArtifactNotFound):
                await made.app.artifacts.get(late[0].artifact)
            found, _ = await made.dialogues.list(DialogueFilter(), limit=10, after=None)
            assert found == []

    async def test_a_file_without_a_row_is_released_and_an_attempt_uses_it(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As after a crash between the two."""
        async with make() as made:
            with monkeypatch.context() as patched:
                patched.setattr(AudioRepository, "enter", broken)
                job_id = await made.hand_in("one")
                await spoken(made)
            assert (await made.app.get(job_id)).status == "failed"
            [path] = await kept(made)
            assert (await tidy(made.service)).released == 1
            assert await kept(made) == []
            assert (await tidy(made.service)).released == 0
            assert await made.dialogues.retry(job_id)
            await spoken(made)
            view = await made.dialogues.get(job_id)
            assert view is not None
            row = await made.dialogues.audio(str(view.audio_file_id))
            assert row is not None
            assert row.artifact == path
            assert await kept(made) == [path]
            assert (await tidy(made.service)).released == 0
            with pytest.raises(JobConflict, match="is completed"):
                await made.dialogues.retry(job_id)

    async def test_deleted_jobs_are_forgotten_when_they_are_gone(self, make: Make) -> None:
        async with make() as made:
            job_id = await made.hand_in("one")
            await made.dialogues.delete(job_id)
            assert (await tidy(made.service, forget_seconds=-1)).forgotten == 0
            await made.prune()
            assert (await tidy(made.service, forget_seconds=-1)).forgotten == 1

    async def test_jobs_and_files_are_listed_with_filters_in_pages(self, make: Make) -> None:
        async with make() as made:
            ids = [await made.hand_in(f"say {n}", user="ada") for n in range(3)]
            other = await made.hand_in("say 3", user="bob")
            await spoken(made)
            found, following = await made.dialogues.list(
                DialogueFilter(user="ada"), limit=2, after=None
            )
            rest, end = await made.dialogues.list(
                DialogueFilter(user="ada"), limit=2, after=following
            )
            assert [each.job_id for each in [*found, *rest]] == ids[::-1]
            assert (
                end is None
                or not (await made.dialogues.list(DialogueFilter(user="ada"), limit=2, after=end))[
                    0
                ]
            )
            files, place = await made.dialogues.audio_files(AudioFilter(), limit=3, after=None)
            more, last = await made.dialogues.audio_files(AudioFilter(), limit=3, after=place)
            assert {each.job_id for each in [*files, *more]} == {*ids, other}
            assert last is None
            [only], _ = await made.dialogues.audio_files(
                AudioFilter(user="bob"), limit=3, after=None
            )
            assert only.job_id == other
            middle = files[1].created_at
            newer, _ = await made.dialogues.audio_files(
                AudioFilter(created_after=middle), limit=9, after=None
            )
            assert [each.job_id for each in newer] == [each.job_id for each in files[:2]]


async def broken(*_: object) -> Stored:
    raise NotImplementedError("the program ends here")
