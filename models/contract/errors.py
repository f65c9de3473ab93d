"""What can go wrong with a model.

ModelError
├── SpecError            the author's description contradicts itself; fix the spec
├── UnknownModelError    no family of that name is installed; show `reverie models`
├── OptionError          this machine or model does not support what the deployment asks for
├── CheckpointError      the weights do not fit the architecture; nothing was loaded
├── DeviceLostError      every later call of this process fails; only another process helps
├── DeviceMemoryError    memory ran out; says how much was requested and how much is free
└── OutOfBlocksError     the cache pool is full; admission should have refused the session
"""


class ModelError(Exception):
    """Base of all errors of this package."""


class SpecError(ModelError):
    """A model's description contradicts itself."""


class UnknownModelError(ModelError):
    """No model family of that name is installed."""


class OptionError(ModelError):
    """A model cannot be loaded with this option, or not on this machine."""


class CheckpointError(ModelError):
    """Weights are missing, or do not fit the architecture."""


class DeviceLostError(ModelError):
    """The device has failed, and everything that this process has on it is lost."""


class DeviceMemoryError(ModelError):
    """Memory ran out.

    Attributes:
        asked_bytes: None where the library does not say.
        free_bytes: None where it is unknown.
    """

    def __init__(
        self, message: str, asked_bytes: int | None = None, free_bytes: int | None = None
    ) -> None:
        super().__init__(message)
        self.asked_bytes = asked_bytes
        self.free_bytes = free_bytes


class OutOfBlocksError(ModelError):
    """The cache pool has fewer free blocks than requested; none was taken."""
