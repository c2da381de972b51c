"""From a URL to the pages of a shop: politely, and only where it is allowed."""
