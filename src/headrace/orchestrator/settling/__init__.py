"""Settling attempts: outcomes, progress and the attempt log on their way to the engine."""
