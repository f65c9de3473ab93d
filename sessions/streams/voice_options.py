"""The operator's settings of the voice that speaks a model's text."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class VoiceOptions(BaseModel):
    """A voice of the host, for sessions that ask for one.

    Attributes:
        engine: null: there is no voice. `espeak` needs espeak-ng on the host; without it the
            server does not start.
        language: as the engine names it.
        words_per_min: how fast it speaks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: Literal["espeak"] | None = None
    language: str = Field(default="en", pattern=r"^[a-z][a-zA-Z0-9-]{1,31}$")
    words_per_min: int = Field(default=170, ge=80, le=450)
