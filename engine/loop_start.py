"""Where a driver begins: at a request, at what a lost worker left, or at another driver's chunk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic

from reverie.engine.capture import Capture
from reverie.engine.checkpoints import Checkpoint
from reverie.engine.emitter import Emitter
from reverie.engine.errors import WeightsChangedError
from reverie.engine.loop_context import LoopContext, PeerState, PeerTimes
from reverie.engine.mailbox import Mailbox
from reverie.engine.open_chunk import OpenChunk
from reverie.engine.options import DriverOptions
from reverie.engine.outputs import FrameMemory, new_memory
from reverie.engine.pacing import PlayoutLead
from reverie.engine.states import LoopStates
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import Durable, LoopKernel, LoopRequest, S


@dataclass(frozen=True, slots=True)
class LoopStart(Generic[S]):
    """From where a driver continues, and how it sees the session's other loops.

    Attributes:
        durable: what its last `SnapshotOut` kept; None starts from the request.
        chunks: chunks that it had put out, so that numbers continue.
        pts_us: media time at which the next frame begins.
        checkpoint: a checkpoint of another driver to fork from, sharing its blocks; see `parting`.
        mailbox: what waited for the driver that it replaces; see `hand_over`.
        peers: for each loop that it reads, how to get its newest state.
        peer_us: the media time of the session, for a loop that has none of its own.
        peer_times: how far other loops of the session have come.
        frame_memory: where its frames are written to.
    """

    durable: Durable | None = None
    chunks: int = 0
    pts_us: int = 0
    checkpoint: Checkpoint[S] | None = None
    mailbox: Mailbox | None = None
    peers: Mapping[str, PeerState] = field(default_factory=dict)
    peer_us: Callable[[], int] | None = None
    peer_times: PeerTimes = field(default_factory=PeerTimes)
    frame_memory: FrameMemory = new_memory


def new_context(
    kernel: LoopKernel[S],
    instance: ModelInstance,
    request: LoopRequest,
    options: DriverOptions,
    start: LoopStart[S],
) -> LoopContext[S]:
    """Return what a new driver consists of."""
    spec, peer_times = kernel.spec, start.peer_times
    first = start.checkpoint or _first(kernel, instance, request, start)
    emitter = Emitter(
        request.session, spec, start.chunks, start.pts_us, options.snapshot_every_us, start.peer_us
    )
    rates = [stream.rate_hz for stream in spec.streams if stream.rate_hz > 0]
    kept = options.history_chunks
    lead = PlayoutLead(options.lead, round(1e6 / rates[0]), kept) if rates else None
    # What each chunk keeps besides the cache was counted when the session was admitted.
    stretches = (peer_times.kept or peer_times.reported) and not spec.chunk_bytes
    reads_prompt = spec.prompt_tokens > 0 and bool(request.prompt)
    context: LoopContext[S] = LoopContext(
        kernel=kernel,
        instance=instance,
        request=request,
        options=options,
        peers=start.peers,
        emitter=emitter,
        mailbox=start.mailbox or Mailbox(request, spec, emitter.tell),
        capture=Capture(request.session, spec.name),
        states=LoopStates(
            instance.blocks,
            first,
            history=max(kept, options.lead.least_chunks) + 1,
            snapshots=options.snapshots,
            budget=spec.blocks_a_session(kept),
            since=partial(_needed_us, lead, peer_times) if stretches else None,
        ),
        lead=lead,
        peer_times=peer_times,
        frame_memory=start.frame_memory,
        open_chunk=OpenChunk(opening=options.receipt_for_opening and reads_prompt),
    )
    if start.mailbox is not None:
        start.mailbox.hand_over((), emitter.tell)
    if start.durable or start.chunks or start.checkpoint:
        context.jump(first)
    return context


def _first(
    kernel: LoopKernel[S], instance: ModelInstance, request: LoopRequest, start: LoopStart[S]
) -> Checkpoint[S]:
    if start.durable:
        WeightsChangedError.unless_same(start.durable, instance.weights_version)
        state = kernel.revive(start.durable, request, instance)
        return Checkpoint(state, start.chunks - 1, None, {}, media_us=start.pts_us)
    state = kernel.init_state(request, instance)
    return Checkpoint(state, -1, request.prompt, request.parameters)


def _needed_us(lead: PlayoutLead | None, peer_times: PeerTimes) -> int:
    """Return the media time that the loop has to be able to go back to."""
    times = [lead.seen_us] if lead is not None else []
    return min([*times, *([peer_times.kept()] if peer_times.kept is not None else [])], default=0)
