"""The bare limit of each engine: the same statements and scripts, sent by a loop with no framework
on one connection, in batches of 200. What those cost themselves is only seen beside another
loop, which has its own: `postgres_independent_program`.
"""
