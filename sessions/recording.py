"""What a recording is, for people and for the folder that keeps it."""

import hashlib
import secrets
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from reverie.sessions.attachment import Role

Kind = Literal["recording", "clip"]
Progress = Literal["running", "complete", "failed"]

ID_PATTERN = r"^[0-9a-f]{24}([0-9a-f]{8})?$"
"""Earlier servers made shorter ones."""


class Recording(BaseModel):
    """A recording or a clip, as far as it has come.

    Attributes:
        reason: why it is over: `stopped`, `session_over`, `longest_s`, `keep_bytes`,
            `keep_bytes_per_owner`, `keep_bytes_per_address`, `disk_full`,
            `disk_slow`, `write_failed`, `server_lost`; empty while it runs.
        started_s: Unix time.
        from_us: the session's media time at which it begins; -1 before its first frame.
        left_out: frames that are missing in it.
        input: the stream whose pushed pictures are recorded beside it; None: none is.
        input_frames: how many of them.
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
    input: str | None = None
    input_frames: int = 0


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
    """Return an id that nobody guesses and that is safe as a file's name."""
    return secrets.token_hex(16)


def hashed(secret: str) -> str:
    """Return what a secret is known by where it is not to be told."""
    # The secrets are random and long: a plain hash tells nothing of them.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
