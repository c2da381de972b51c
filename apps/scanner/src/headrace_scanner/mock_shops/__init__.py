"""Eight shops that do not exist, for tests and for the demo."""

from headrace_scanner.mock_shops.server import MockShops

__all__ = ["MockShops"]
