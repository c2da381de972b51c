"""How to reach an SQLite file: address, the threads that own connections, errors."""
