"""A small server that speaks LiveKit's protocol, so that tests can use the real SDK.

It runs as a process of its own, `python -m livekit_server`, which `livekit_rig` starts. It knows
signalling of version 0 at `/rtc` (two peer connections for each participant), agent workers at
`/agent`, the part of the server API that the agents package calls, and, at `/faults`, how to go
wrong on request. It forwards RTP and data packets as they are, and checks a token's signature, its
end and its room. There is no resuming of a connection (it asks for a new one), no simulcast, no
TURN, no encryption, and no permissions.

Start reading at `app.py`.
"""
