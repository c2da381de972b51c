"""Redis as people run it: TLS, sentinels, a cluster, users with few rights."""
