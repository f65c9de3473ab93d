"""The parts that all events share.

Every event carries the session, a sequence number that counts what this attachment was sent (+1
always), and a monotonic time in microseconds. The outbox fills those three in, so that the code
that makes an event says only what happened.
"""

from pydantic import BaseModel, ConfigDict, Field


class Value(BaseModel):
    """Base of all parts of events."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Event(Value):
    """Base of all events."""

    session: str = ""
    sequence: int = Field(default=0, ge=0)
    time_us: int = Field(default=0, ge=0, description="The server's monotonic clock.")
