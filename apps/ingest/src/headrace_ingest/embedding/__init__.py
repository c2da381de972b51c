"""From text to vectors: by a model in this process, or by any OpenAI-compatible server."""

from headrace_ingest.embedding.base import Embedder, EmbeddingError, Vectors
from headrace_ingest.embedding.local import LocalEmbedder
from headrace_ingest.embedding.remote import RemoteEmbedder
from headrace_ingest.embedding.sentences import WHOLE_CHUNK, sentences
from headrace_ingest.embedding.units import embed_chunks

__all__ = [
    "WHOLE_CHUNK",
    "Embedder",
    "EmbeddingError",
    "LocalEmbedder",
    "RemoteEmbedder",
    "Vectors",
    "embed_chunks",
    "sentences",
]
