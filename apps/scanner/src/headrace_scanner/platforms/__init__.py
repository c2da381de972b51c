"""The eight platforms: where their products are, and how their answers are read."""

from headrace_scanner.platforms.model import NAMES, SHOPS, Platform, load_platforms

__all__ = ["NAMES", "SHOPS", "Platform", "load_platforms"]
