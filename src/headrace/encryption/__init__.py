"""Encryption at rest: what chosen tasks store is sealed before it reaches the engine.

`keys.py` is where keys come from, `cipher.py` seals bytes, `sealing.py` says what a sealed value
belongs to. How sealed values look is in `model/sealed.py`.
"""

from headrace.encryption.keys import KeySource, make_keys
from headrace.encryption.sealing import Sealing

__all__ = ["KeySource", "Sealing", "make_keys"]
