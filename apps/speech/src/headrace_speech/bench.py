"""How long a dialogue takes: `python -m headrace_speech.bench --turns 60`."""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from pathlib import Path

import headrace
from headrace_speech.bundle import bundle
from headrace_speech.dialogues import Dialogues
from headrace_speech.script import Script, Turn
from headrace_speech.service import SpeechService

TEXTS = (
    ("지나", "안녕하세요. 부산 가는 다음 기차가 몇 시에 있나요?"),
    ("Tom", "Good morning! The next train to Busan leaves at ten past nine, from platform four."),
)
VOICES = {"지나": "ko+f2", "Tom": "en-us+m3"}


async def measure(turns: int, folder: Path) -> str:
    """Speak one dialogue on SQLite, and return what it took."""
    app = headrace.App(f"sqlite:///{folder}/jobs.db", artifacts=str(folder / "files"))
    setup = app.load_bundle(bundle)
    async with app:
        service = SpeechService(setup)
        dialogues = Dialogues(service)
        said = [Turn(*TEXTS[place % len(TEXTS)]) for place in range(turns)]
        job = await dialogues.hand_in(Script(turns=said, voice_assignments=VOICES))
        began, spent = time.perf_counter(), _processor()
        await headrace.JobOrchestrator(app).run_until_idle()
        seconds = time.perf_counter() - began
        service.close()
        done = await dialogues.get(job.job_id)
        if done is None or done.seconds is None:
            raise SystemExit(f"it was not spoken: {done}")
        return (
            f"{turns} turns, {done.seconds:.1f} s of sound: {seconds:.2f} s by the clock, "
            f"{_processor() - spent:.2f} s of processor time of the worker"
        )


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(measure(given.turns, Path(folder))))


if __name__ == "__main__":
    main()
