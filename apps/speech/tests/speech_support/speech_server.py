"""A real server of speech on loopback, which does as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from headrace_speech.sound.samples import Sound, write_wav

RATE = 24_000
SECONDS_PER_LETTER = 0.01
LIMIT = 60.0

Answer = tuple[int, dict[str, str], bytes]


def tone(text: str, loudness: float = 0.3) -> Sound:
    """What the server answers: a tone, the longer the text the longer."""
    count = round(max(len(text), 1) * SECONDS_PER_LETTER * RATE)
    wave = np.sin(np.arange(1, count + 1) * (2 * np.pi * 220 / RATE)) * loudness
    return Sound(wave.astype(np.float32), RATE)


class SpeechServer:
    """Answers with the next of `answers`, then with tones; a text of `failing` with 500, so
    often. With `hold` it waits for `release`.
    """

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.failing: dict[str, int] = {}
        self.hold = False
        self.begun: list[str] = []
        self.most: dict[str, int] = {}
        self._held: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.keys.append(self.headers.get("Authorization"))
                status, headers, content = outer.answer(body)
                try:
                    self.send_response(status)
                    for name, value in {**headers, "Content-Length": str(len(content))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:
                    pass  # nobody waits for it any longer

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))

    @property
    def held(self) -> list[str]:
        """Return the texts that wait for `release`."""
        with self._lock:
            return list(self._held)

    def release(self, *texts: str) -> None:
        """Answer these."""
        with self._lock:
            events = [self._held.pop(text) for text in texts]
        for event in events:
            event.set()

    def release_all(self) -> None:
        """Answer all, and hold nothing any longer."""
        self.hold = False
        self.release(*self.held)

    def asked(self, text: str) -> int:
        """Return how often a text was to be spoken."""
        return sum(each["input"] == text for each in self.requests)

    def answer(self, body: dict[str, Any]) -> Answer:
        text = body["input"]
        with self._lock:
            self.requests.append(body)
            given = self.answers.pop(0) if self.answers else None
            if self.failing.get(text, 0) > 0:
                self.failing[text] -= 1
                given = (500, {}, b"oops")
            event = threading.Event() if self.hold else None
            if event is not None:
                self._held[text] = event
                self.begun.append(text)
                # Texts begin with the name of their user.
                user = text.partition(" ")[0]
                now = sum(each.partition(" ")[0] == user for each in self._held)
                self.most[user] = max(self.most.get(user, 0), now)
        if given is not None:
            return given
        if event is not None:
            event.wait(LIMIT)
        return 200, {"Content-Type": "audio/wav"}, write_wav(tone(text))


@contextmanager
def a_speech_server() -> Iterator[SpeechServer]:
    """A server that runs."""
    made = SpeechServer()
    made.thread.start()
    try:
        yield made
    finally:
        made.release_all()
        made.http.shutdown()
        made.thread.join()
        made.http.server_close()
