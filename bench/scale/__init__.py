"""How far one store carries, and what two change: measured parts, and a model made of them."""
