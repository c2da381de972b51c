"""The verbs of the engine contract, a file for each group. The rules are in `engine/base.py`."""
