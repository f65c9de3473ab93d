"""What is known of a recording, for clients and for its entry in the folder."""

import hashlib
import secrets
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from reverie.sessions.attachments.attachment import Role

Kind = Literal["recording", "clip"]
Progress = Literal["running", "complete", "failed"]

ID_PATTERN = r"^[0-9a-f]{24}([0-9a-f]{8})?$"
"""Ids of earlier servers were shorter."""


_OF_ONE_INPUT = ("input", "input_frames")


class RecordedInput(BaseModel):
    """Pictures that were pushed into a stream while a session was recorded.

    Attributes:
        frames: how many.
        left_out: pictures that came faster than they could be encoded.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str
    frames: int = 0
    left_out: int = 0


class Recording(BaseModel):
    """A recording or a clip so far.

    Attributes:
        reason: why it ended: `stopped`, `session_over`, `longest_s`, `keep_bytes`,
            `keep_bytes_per_owner`, `keep_bytes_per_address`, `disk_full`,
            `disk_slow`, `write_failed`, `server_lost`; empty while it runs.
        started_s: Unix time.
        from_us: the session's media time at which it begins; -1 before its first frame.
        left_out: frames that are missing.
        inputs: the input streams that are recorded with it, a file each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=ID_PATTERN)
    session: str
    kind: Kind
    model: str
    program: str
    seed: int
    started_s: float
    state: Progress = "running"
    reason: str = ""
    from_us: int = -1
    frames: int = 0
    duration_us: int = 0
    size_bytes: int = 0
    left_out: int = 0
    inputs: tuple[RecordedInput, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_one_input(cls, value: object) -> object:
        """Read entries of earlier servers, which recorded at most one input stream."""
        if not isinstance(value, Mapping) or "input" not in value:
            return value
        rest = {name: each for name, each in value.items() if name not in _OF_ONE_INPUT}
        if value["input"] is None:
            return rest
        return {**rest, "inputs": [{"stream": value["input"], "frames": value["input_frames"]}]}


class Keys(BaseModel):
    """Hashes of the secrets of a session, so that its recordings outlive it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: str
    watch_token: str
    owner: str

    @classmethod
    def of(cls, token: str, watch_token: str, owner: str) -> "Keys":
        """Return the hashes of three secrets."""
        return cls(token=hashed(token), watch_token=hashed(watch_token), owner=hashed(owner))

    def role(self, secret: str) -> Role | None:
        """Return the most that a secret allows; None: nothing."""
        given = hashed(secret)
        drives = secrets.compare_digest(given, self.token)
        owns = secrets.compare_digest(given, self.owner)
        watches = secrets.compare_digest(given, self.watch_token)
        if drives or owns:
            return Role.DRIVER
        return Role.VIEWER if watches else None


class Entry(BaseModel):
    """A recording with the keys to it: what its `.json` file holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recording: Recording
    keys: Keys


def new_id() -> str:
    """Return an id that cannot be guessed and is safe as a file's name."""
    return secrets.token_hex(16)


def hashed(secret: str) -> str:
    """Return the hash by which a secret is recognised where it must not be stored."""
    # The secrets are random and long, so that a plain hash does not reveal them.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
