"""A real server of embeddings on loopback, which does as a test says."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


class EmbeddingServer:
    """A server on loopback. `answers` are used up first; then it answers vectors."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.dimensions = 4
        self.base64 = False
        self._free = threading.Event()
        self._free.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                outer.keys.append(self.headers.get("Authorization"))
                outer._free.wait()
                status, headers, content = outer.answer(body)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever)

    def hold(self) -> None:
        """Answer nobody from now on, until `release`."""
        self._free.clear()

    def release(self) -> None:
        """Answer those who wait, and everybody else."""
        self._free.set()

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if self.answers:
            return self.answers.pop(0)
        rows: list[dict[str, Any]] = []
        for index, text in enumerate(body["input"]):
            vector = np.arange(1, self.dimensions + 1, dtype="<f4") * len(text)
            encoded = base64.b64encode(vector.tobytes()).decode()
            rows.append({"index": index, "embedding": encoded if self.base64 else vector.tolist()})
        return 200, {}, json.dumps({"data": rows[::-1]}).encode()


@contextmanager
def an_embedding_server() -> Iterator[EmbeddingServer]:
    """A server that runs."""
    made = EmbeddingServer()
    made.thread.start()
    try:
        yield made
    finally:
        made.release()
        made.http.shutdown()
        made.thread.join()
        made.http.server_close()
