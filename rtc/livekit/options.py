"""What may be chosen about a world in a room; every default suits a room of a few people."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """How a world is shown and steered.

    Attributes:
        max_bitrate: of the video, in bits a second.
        least_px: smaller pictures are enlarged by a whole factor, since a video has colours at half
            its size only: it makes the pictures of a small world as sharp as they are. 0: never.
        takes_chat: whether a line on `lk.chat` is a prompt. Turn it off where something else reads
            the chat, such as an `AgentSession`.
        prompts_from: who may say what the world becomes: the `driver`, or `everyone`.
        camera: the identity whose camera is shown to the world, where the program takes one; None
            takes the driver's; "" takes nobody's.
        seat_idle_s: a driver who has done nothing for so long gives way to whoever asks.
        empty_after_s: a room that nobody has watched for so long parks its world: a reload of a
            page is shorter.
        keep_empty_s: a parked world that nobody comes back to ends after this time.
        touch_s: how often a parked session is touched, so that it is not idle to its server.
        attributes_per_s: how often at most the attributes are told.
        command_s: for the session to answer a command.
        room_s: for the room to take anything.
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
