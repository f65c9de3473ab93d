"""The operator's settings of recordings; every default is safe on a shared machine."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class RecordingOptions(BaseModel):
    """Where recordings are kept, how long they may be, and when they are deleted.

    Attributes:
        enabled: whether sessions can be recorded at all.
        folder: null makes a private one that is deleted with the server; in a named one, recordings
            and the keys to fetch them outlive the server.
        keep_s: a recording is deleted so long after it began.
        keep_bytes: of all recordings. Beyond it the oldest of an owner who is recording are
            deleted, then that owner's running ones end, and new ones of others are refused.
        keep_count: likewise, by number.
        keep_bytes_per_owner: of one owner; beyond it the owner's oldest are deleted.
        keep_count_per_owner: likewise, by number.
        keep_bytes_per_address: of those started from one address, of any owner, since the server
            started; beyond it new ones are refused.
        keep_count_per_address: likewise, by number.
        longest_s: a recording ends after so much media time.
        clip_s: how much of each session is kept in memory for clips; 0 keeps nothing.
        clip_bytes: likewise, in bytes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    folder: Path | None = None
    keep_s: float = Field(default=86_400.0, gt=0)
    keep_bytes: int = Field(default=2 * 2**30, ge=2**20)
    keep_count: int = Field(default=1000, ge=1)
    keep_bytes_per_owner: int = Field(default=2**30, ge=2**20)
    keep_count_per_owner: int = Field(default=200, ge=1)
    keep_bytes_per_address: int = Field(default=2**30, ge=2**20)
    keep_count_per_address: int = Field(default=500, ge=1)
    longest_s: float = Field(default=3600.0, gt=0)
    clip_s: float = Field(default=30.0, ge=0, le=600)
    clip_bytes: int = Field(default=16 * 2**20, ge=2**16)


NOT_ENABLED = RecordingOptions(enabled=False)
