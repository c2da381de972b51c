"""Jobs in Redis or Valkey: one Lua script per verb, one connection for all of them."""
