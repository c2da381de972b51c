"""Questions that the table does not answer: growth, handlers that work, payloads, memory, cost.

Nothing is imported here: `program` runs as a worker whose memory is measured.
"""
