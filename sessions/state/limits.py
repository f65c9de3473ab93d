"""What an operator may set about sessions; every default is safe on a shared machine."""

from pydantic import BaseModel, ConfigDict, Field

from reverie.engine.mailbox import TURNS


class SessionLimits(BaseModel):
    """Counts, sizes and times of sessions. An error about a limit names it.

    Attributes:
        sessions: open at once, waiting ones included.
        sessions_per_owner: of them, those of one owner.
        sessions_per_address: likewise, those that were opened over the network from one address, of
            any owner; null does not count them, because behind a proxy all have one address.
        attachments: connections to one session, of which one is kept for the driver.
        prompt_chars: characters of the whole prompt.
        pending_commands: commands of a session that may wait for earlier ones.
        pending_controls: controls of a session that may wait for their receipt.
        pending_turns: turns of a session that may wait until the model takes them up.
        outbox_frames: frames that may wait for one attachment; beyond it, the waiting ones are
            dropped up to the next key frame.
        outbox_packets: packets of sound (20 ms each) of a stream that may wait for one attachment;
            beyond it, the oldest are dropped.
        outbox_bytes: of media, likewise.
        outbox_events: events that may wait for one attachment; beyond it, it ends as `slow_viewer`.
        stall_s: an attachment that takes nothing for so long while events wait ends as
            `slow_viewer`.
        idle_s: an attachment that sends nothing and is shown nothing for so long ends as `idle`.
        grace_s: a session without attachments is kept for so long.
        command_s: a request to the loop that takes longer counts as failed. More than the pool's
            `ask_limit_s`, so that the pool replaces the worker first.
        close_s: time for the loop to end and give its place back.
        views_per_s: how often at most a changed view is sent.
        input_pieces: pictures or pieces of sound of one input stream that may wait to be decoded.
        input_bytes: likewise, in bytes.
        input_pixels: of one pushed picture, width times height.
        input_wait_s: a piece is refused that the loop does not accept within this time.
        input_gap_s: a clip, or sound, ends when nothing more of it comes for so long.
        decode_s: a session ends as `decode_failed` when a push takes longer to decode.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sessions: int = Field(default=64, ge=1)
    sessions_per_owner: int = Field(default=8, ge=1)
    sessions_per_address: int | None = Field(default=32, ge=1)
    attachments: int = Field(default=16, ge=1)
    prompt_chars: int = Field(default=2000, ge=1, le=1_000_000)
    pending_commands: int = Field(default=1024, ge=1)
    pending_controls: int = Field(default=4096, ge=1)
    pending_turns: int = Field(default=8, ge=1, le=TURNS)
    outbox_frames: int = Field(default=48, ge=1)
    outbox_packets: int = Field(default=250, ge=1)
    outbox_bytes: int = Field(default=64 * 2**20, ge=2**16)
    outbox_events: int = Field(default=4096, ge=16)
    stall_s: float = Field(default=10.0, gt=0)
    idle_s: float = Field(default=1800.0, gt=0)
    grace_s: float = Field(default=60.0, gt=0)
    command_s: float = Field(default=90.0, gt=0)
    close_s: float = Field(default=10.0, gt=0)
    views_per_s: float = Field(default=10.0, gt=0)
    input_pieces: int = Field(default=16, ge=1)
    input_bytes: int = Field(default=64 * 2**20, ge=2**16)
    input_pixels: int = Field(default=2**24, ge=1, le=2**28)
    input_wait_s: float = Field(default=30.0, gt=0)
    input_gap_s: float = Field(default=2.0, gt=0)
    decode_s: float = Field(default=10.0, gt=0)
