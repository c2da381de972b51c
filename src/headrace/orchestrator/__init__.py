"""How work is done: claim, run, settle."""

from headrace.orchestrator.middleware import CallNext, Middleware
from headrace.orchestrator.orchestrator import JobOrchestrator
from headrace.orchestrator.worker_program import run_worker

__all__ = ["CallNext", "JobOrchestrator", "Middleware", "run_worker"]
