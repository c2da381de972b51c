"""Handlers in processes of their own, which can be killed on time and capped in memory.

The worker's side: `pool` starts and reuses `child_process`es, and `attempt_server` runs what a
handler asks of its context. The child's side is `child`. Both use `protocol`, `error_transport` and
`log_forwarding`. Between them, `supervisor` ends whatever a child has started.
"""

from headrace.orchestrator.isolation.errors import ChildDied, RemoteError
from headrace.orchestrator.isolation.pool import ProcessPool

__all__ = ["ChildDied", "ProcessPool", "RemoteError"]
