"""Raw samples, for Python clients that need the model's exact output."""

from reverie.media.audio.sound import PACKET_US, AudioCodec, Sound, SoundFormat, SoundShape


class Pcm16Encoder:
    """Only cuts and copies: pieces of 20 ms, and a shorter one at the end of the given sound."""

    def __init__(self, shape: SoundShape) -> None:
        """Keep the format."""
        self._piece = max(1, shape.rate_hz * PACKET_US // 1_000_000)
        self.format = SoundFormat(AudioCodec.PCM16, shape.rate_hz, shape.channels)

    def encode(self, samples_NC: Sound) -> list[bytes]:
        """Return the pieces: nothing is held back."""
        little_NC = samples_NC.astype("<i2", copy=False)
        return [
            little_NC[start : start + self._piece].tobytes()
            for start in range(0, len(little_NC), self._piece)
        ]

    def finish(self) -> list[bytes]:
        """Return nothing, because nothing is held back."""
        return []
