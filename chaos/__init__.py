"""Headrace under faults: real servers and programs, judged by a log outside the engine."""
