"""Detect personal data, and mask it before anything is stored."""

from headrace_ingest.masking.kinds import Kind, Span
from headrace_ingest.masking.mask import (
    Masked,
    MaskedChunks,
    apply_to_chunks,
    count,
    find,
    mask,
    mask_chunks,
)

__all__ = [
    "Kind",
    "Masked",
    "MaskedChunks",
    "Span",
    "apply_to_chunks",
    "count",
    "find",
    "mask",
    "mask_chunks",
]
