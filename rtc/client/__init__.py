"""The Python client: `connect`, a session over the network, and the link that reconnects.

Of the server's packages it imports `wire` only.
"""
