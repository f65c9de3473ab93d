"""The server's side of the pool: slots, queues, supervision, and the handle that a session holds.

It talks to a worker through `wire` only, and never imports `worker`.
"""
