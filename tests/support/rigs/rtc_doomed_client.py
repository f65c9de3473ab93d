"""A client process that attaches to the session on its input, and waits to be killed."""

import json
import sys

from websockets.sync.client import connect


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


say("ready")  # a session may not wait for long, so it is opened after the imports
url, token = sys.stdin.readline().split()
with connect(url, proxy=None) as socket:
    socket.send(json.dumps({"type": "hello", "protocol": 1, "token": token, "codecs": ["jpeg"]}))
    while True:
        message = socket.recv()
        if isinstance(message, bytes):
            say("frame")
