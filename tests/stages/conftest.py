"""The same App and workers as those of the orchestrator's tests."""

from tests.orchestrator.conftest import app, clock, here, local, url, worker

__all__ = ["app", "clock", "here", "local", "url", "worker"]
