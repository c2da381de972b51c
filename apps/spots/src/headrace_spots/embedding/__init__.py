"""From sentences to vectors, by a model in this process."""

from headrace_spots.embedding.encoder import DIMENSIONS, SentenceEncoder
from headrace_spots.embedding.split import split_sentences

__all__ = ["DIMENSIONS", "SentenceEncoder", "split_sentences"]
