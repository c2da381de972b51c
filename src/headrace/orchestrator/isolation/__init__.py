"""Handlers in processes of their own, which can be killed on time and capped in memory.

The worker's side: `pool` keeps the processes, `process` is one of them, `session` answers what a
handler asks of its context. The child's side: `child` is the program, `serve` its life, `link` its
end of the line, `remote` the handler's context. Between them: `messages`, `failures`, `logs`.
"""

from headrace.orchestrator.isolation.errors import ChildDied, RemoteError
from headrace.orchestrator.isolation.pool import ProcessPool

__all__ = ["ChildDied", "ProcessPool", "RemoteError"]
