"""The description of a loop: its components, its streams, its cache, its capabilities."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reverie.models.contract.controls import ControlSpec, ParameterRole, ParameterSpec
from reverie.models.contract.streams import InputSpec, StreamKind, StreamSpec


class Capability(StrEnum):
    """What a loop can do beyond stepping forward."""

    TEXT_PROMPT = "text_prompt"
    ACTIONS = "actions"
    REWIND = "rewind"
    FORK = "fork"
    DURABLE = "durable"
    """The state's durable part can leave the process and be rebuilt."""
    EXACT_REBUILD = "exact_rebuild"
    """A rebuilt state continues exactly as the lost one would have."""
    BATCH = "batch"
    """`run_step` computes units with equal batch keys in one pass."""


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A part with weights: a transformer, a codec, a text encoder.

    Attributes:
        adaptable: whether LoRAs can change it (`LoadOptions.adapters`).
        decoders: kinds of decoders that can stand in for its own (`LoadOptions.decoder`).
    """

    name: str
    role: str
    parameters: int = 0
    adaptable: bool = False
    decoders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """A kind of cache blocks: its shape, and which units write it.

    Attributes:
        producers: the loops whose units write it, each for its own session.
        units: kinds of these units, `WorkPlan.kind`.
        shape: of a block; empty when it is known only from the loaded weights.
    """

    name: str
    producers: tuple[str, ...]
    units: tuple[str, ...]
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """One named iterative behaviour of a model.

    Attributes:
        name: `world_model`, `video_continuation`, `ar_decode`, ...
        components: names of the components that its steps use.
        streams: what it puts out.
        controls: what it takes, apart from prompt and parameters.
        parameters: numbers that a session may change while it runs.
        chunk_frames: frames of the first video stream that become visible together.
        window_blocks: cache blocks of a full context window; 0 when it keeps no cache.
        chunk_blocks: cache blocks that each chunk adds to the window.
        prompt_tokens: longest prompt that the model reads; 0 when it takes none.
        inputs: media that it takes.
        reads: other loops of the program whose newest state it sees (`Controls.peers`).
        takes_turns: whether it answers texts (`Controls.turns`).
        rebuild_blocks: cache blocks that are rewritten while the old ones are still held.
        caches: names of the caches (`CacheSpec`) that its window consists of.
        state_bytes: the most that the newest state holds besides cache blocks.
        chunk_bytes: what each chunk that can be restored holds and does not share.
        example_prompts: prompts that it understands, which a client offers to people.
        example_turns: likewise turns that it answers.

    A loop without a video or audio stream is not paced by a viewer's playhead; a parameter of it
    may have a `ParameterRole`. Its `window_blocks` count the blocks of a peer that its states keep.
    """

    name: str
    components: tuple[str, ...]
    streams: tuple[StreamSpec, ...]
    controls: tuple[ControlSpec, ...] = ()
    parameters: tuple[ParameterSpec, ...] = ()
    chunk_frames: int = 1
    window_blocks: int = 0
    chunk_blocks: int = 0
    prompt_tokens: int = 0
    inputs: tuple[InputSpec, ...] = ()
    reads: tuple[str, ...] = ()
    takes_turns: bool = False
    rebuild_blocks: int = 0
    caches: tuple[str, ...] = ()
    state_bytes: int = 0
    chunk_bytes: int = 0
    example_prompts: tuple[str, ...] = ()
    example_turns: tuple[str, ...] = ()

    def parameter_for(self, role: ParameterRole) -> str | None:
        """Return the name of the parameter with a role, if the loop has one."""
        return next((spec.name for spec in self.parameters if spec.role is role), None)

    @property
    def chunk_us(self) -> int:
        """How long a chunk with pictures lasts; 0 of a loop without, whose chunks vary."""
        rates = [stream.rate_hz for stream in self.streams if stream.kind is StreamKind.VIDEO]
        return round(self.chunk_frames * 1e6 / rates[0]) if rates else 0

    @property
    def has_media(self) -> bool:
        """Whether it puts out pictures or sound, which a viewer's playhead paces."""
        return any(stream.rate_hz > 0 for stream in self.streams)

    def blocks_a_session(self, history_chunks: int) -> int:
        """Return the cache blocks to hold for one session, so that its steps cannot run out.

        A full window, one chunk in progress, blocks that only older chunk states refer to, and a
        window that is being rebuilt.
        """
        in_use = self.window_blocks + self.chunk_blocks * (1 + history_chunks)
        return in_use + self.rebuild_blocks

    def bytes_beside_the_cache(self, history_chunks: int) -> int:
        """Return what the states of one session take: the newest, the next, and older ones."""
        return self.state_bytes + self.chunk_bytes * (1 + history_chunks)


@dataclass(frozen=True, slots=True)
class Lead:
    """How far a program may run ahead of its viewer: as far as the line needs, within bounds.

    What is unseen can be taken back, so that each chunk of it is a state that is kept.

    Attributes:
        least_chunks: chunks that may be finished and not yet seen however short the line is.
        most_ms: the most media that may be unseen, however long the line is.
    """

    least_chunks: int = 1
    most_ms: int = 1000

    def most_chunks(self, chunk_us: int) -> int:
        """Return how many unseen chunks that is, of a loop with chunks of that length."""
        return max(self.least_chunks, -(-self.most_ms * 1000 // chunk_us) if chunk_us else 0)


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """What a session can run: loops over one instance, and how far they may run ahead.

    Attributes:
        loops: the first one leads: the session's chunks and its end are this loop's.
        lead: how far they may run ahead of the viewer.
        parameters: values that take the place of the loops' own defaults.
    """

    name: str
    loops: tuple[str, ...]
    lead: Lead = Lead()  # frozen
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CapabilityMatrix:
    """Which loop can do what."""

    rows: dict[str, frozenset[Capability]] = field(default_factory=dict)

    def has(self, loop: str, capability: Capability) -> bool:
        """Tell whether `loop` can do `capability`."""
        return capability in self.rows.get(loop, frozenset())
