"""The engine fixtures of the conformance suite."""

from tests.engine.conftest import (
    clock,
    engine,
    engine_url,
    open_another,
    pytest_generate_tests,
    stores,
)

__all__ = ["clock", "engine", "engine_url", "open_another", "pytest_generate_tests", "stores"]
