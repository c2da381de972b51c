"""Settings of the bundle: `HEADRACE_INGEST_<NAME>`, or `[ingest]` in headrace.toml."""

from __future__ import annotations

import msgspec

from headrace_ingest.parsing.parsed import MEBIBYTE


class IngestSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be changed without touching code."""

    chunk_size: int = 500
    overlap_size: int = 128
    batch_size: int = 50
    """So many texts are embedded at once."""
    embedding_url: str | None = None
    """An OpenAI-compatible service, such as https://api.example.com/v1; without it the model on
    this machine is used."""
    embedding_key: str | None = None
    embedding_model: str = "text-embedding-3-small"
    embedding_dimensions: int = 1536
    """How many numbers a vector of that service has."""
    parse_seconds: float = 60.0
    """A document that takes longer to read is given up."""
    parsers: int = 2
    """So many documents are read at once, each in a process of its own."""
    largest_file: int = 256 * MEBIBYTE
    search_memory: int = 2048 * MEBIBYTE
    """So many bytes of vectors a server keeps in memory to search in; if there are more, pgvector
    compares them, where PostgreSQL has it."""
    mask_names: bool = True
    """Whether names of persons are masked as well."""
    keep_originals: bool = True
    """Whether originals are kept, sealed, so that they can be opened from the page."""
    key: str | None = None
    """Seals the originals: 32 bytes in base64. Without it one is made beside the store."""
