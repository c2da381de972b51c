"""How to reach a Redis server: address, connections, scripts, errors."""
