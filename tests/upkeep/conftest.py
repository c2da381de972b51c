"""The engine fixtures of the conformance suite."""

from tests.engine.conftest import clock, engine, engine_url, open_another

__all__ = ["clock", "engine", "engine_url", "open_another"]
