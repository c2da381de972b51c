"""How to reach a PostgreSQL server: address, connections, deadlines, migrations, errors."""
