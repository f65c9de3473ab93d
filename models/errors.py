"""What can go wrong with a model.

ModelError
├── SpecError            the author's description contradicts itself; fix the spec
├── UnknownModelError    no family of that name is installed; show `reverie models`
├── OptionError          this machine or model does not have what the deployment asks for
├── CheckpointError      the weights do not fit the architecture; nothing was loaded
└── OutOfBlocksError     the cache pool is full; admission should have refused the session
"""


class ModelError(Exception):
    """Base of all errors of this room."""


class SpecError(ModelError):
    """A model's description contradicts itself."""


class UnknownModelError(ModelError):
    """No model family of that name is installed."""


class OptionError(ModelError):
    """A model is to be loaded in a way that it, or this machine, does not know."""


class CheckpointError(ModelError):
    """Weights are missing, or do not fit the architecture."""


class OutOfBlocksError(ModelError):
    """The cache pool has fewer free blocks than were asked for; nothing was taken."""
