"""What an operator may set about recordings; every default is safe on a shared machine."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class RecordingOptions(BaseModel):
    """Where recordings lie, how long they may be, and when they go.

    Attributes:
        enabled: whether sessions can be recorded at all.
        folder: null makes a private one that goes with the server; in one that is named, recordings
            outlive the server, with those who may fetch them.
        keep_s: a recording is deleted so long after it was begun.
        keep_bytes: of all recordings. Nobody's go for somebody else's: beyond it the oldest of an
            owner who records go, then their running ones end, and others are refused new ones.
        keep_count: likewise, by number.
        keep_bytes_per_owner: of one owner's; beyond it their own oldest go.
        keep_count_per_owner: likewise, by number.
        keep_bytes_per_address: of those that were asked for from one address, whoever owns them,
            since the server began; beyond it new ones are refused.
        keep_count_per_address: likewise, by number.
        longest_s: a recording ends by itself after so much media time.
        clip_s: how much of each session is held in memory for clips; 0 holds nothing.
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
