"""The worker's side of the pool: the step loop, its sessions, and prompts that are encoded ahead.

It talks to the server through `wire` only, and never imports `server`.
"""
