"""Probes: `/healthz`, `/readyz` and `/metrics` of a process, on a port of their own.

Answered on the event loop that does the work, so that a blocked loop does not answer. They show no
data of jobs, ask for no key, and cost a job nothing.
"""

from headrace.probes.listen import probes_on
from headrace.probes.probe import Probe

__all__ = ["Probe", "probes_on"]
