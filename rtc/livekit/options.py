"""Options of a world in a room; every default suits a room of a few people."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """How a world is shown and steered.

    Attributes:
        max_bitrate: limit of the video, in bits a second.
        least_px: smaller pictures are enlarged by a whole factor, since a video has colours at half
            its size only: it makes the pictures of a small world as sharp as they are. 0: never.
        takes_chat: whether a line on `lk.chat` is a prompt. Turn it off where another handler
            reads the chat, such as an `AgentSession`.
        prompts_from: who may send prompts: the `driver`, or `everyone`.
        camera: the identity whose camera the world sees, where the program takes one; None is the
            driver; "" turns cameras off.
        control_idle_s: a driver who was idle for so long loses the lock to a participant who asks.
        empty_after_s: a room without viewers for so long parks its world; a reload of a page is
            shorter.
        keep_empty_s: a parked world without a new viewer ends after this time.
        touch_s: interval at which a parked session is paused again, so that its server does not
            count it as idle.
        attributes_per_s: updates of the attributes at most.
        command_s: limit for the session to answer a command.
        room_s: limit for each call to the room.
    """

    max_bitrate: int = 4_000_000
    least_px: int = 256
    takes_chat: bool = True
    prompts_from: str = "driver"
    camera: str | None = None
    control_idle_s: float = 30.0
    empty_after_s: float = 3.0
    keep_empty_s: float = 600.0
    touch_s: float = 60.0
    attributes_per_s: float = 4.0
    command_s: float = 10.0
    room_s: float = 10.0
