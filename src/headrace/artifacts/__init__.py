"""Files that jobs keep: in a local folder or an S3-compatible store, behind one door.

A file's path holds its layer, its job and the token of the attempt that wrote it, so an attempt
that lost its lease can never overwrite what a newer one wrote. The index of what belongs to a job
is kept in the engine, guarded by the token: only what is in it is visible.
"""

from headrace.artifacts.address import open_store
from headrace.artifacts.names import LAYERS, check_layer, check_name, check_path, place
from headrace.artifacts.store import ArtifactStore, Stored

__all__ = [
    "LAYERS",
    "ArtifactStore",
    "Stored",
    "check_layer",
    "check_name",
    "check_path",
    "open_store",
    "place",
]
