"""States that a session can go back to, and the cache blocks that they hold."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic

from reverie.models.blocks import BlockId, BlockPool
from reverie.models.errors import OutOfBlocksError
from reverie.models.loop import Durable, S

STRETCH = 32
"""How much shorter the chunks of a loop may be than those of the one that leads."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment(Generic[S]):
    """A state, and what it stands for. Equal only to itself.

    Attributes:
        chunk: the last chunk that was put out before it; -1 before the first.
        prompt: the prompt that it stands under; None when only the kernel knows.
        parameters: likewise, those that are known.
        shown: whether the frames of `chunk` came out of this very state; False for one that was
            only begun or revived, of which parts may still have to be made.
        media_us: media time at which `chunk` ended; 0 for one that was begun.
    """

    state: S
    chunk: int
    prompt: str | None
    parameters: Mapping[str, float]
    shown: bool = False
    media_us: int = 0


class BlockHolder:
    """The references of one session to blocks of the pool: one for each moment that it keeps."""

    def __init__(self, pool: BlockPool | None) -> None:
        """Hold nothing of `pool`; None for an instance without a cache."""
        self._pool = pool
        self._held: Counter[BlockId] = Counter()

    def __len__(self) -> int:
        """How many different blocks are held."""
        return len(self._held)

    def reserve(self, count: int) -> tuple[BlockId, ...]:
        """Take fresh blocks.

        Raises:
            OutOfBlocksError: there are fewer; nothing was taken.
        """
        if not count:
            return ()
        if self._pool is None:
            raise OutOfBlocksError(f"{count} blocks asked for of an instance that has no pool")
        blocks = self._pool.reserve(count)
        self._held.update(blocks)
        return blocks

    def retain(self, blocks: Iterable[BlockId]) -> None:
        """Refer to blocks once more."""
        if self._pool is not None:
            kept = tuple(blocks)
            self._pool.retain(kept)
            self._held.update(kept)

    def release(self, blocks: Iterable[BlockId]) -> None:
        """Drop one reference to each block."""
        if self._pool is not None:
            dropped = tuple(blocks)
            self._pool.release(dropped)
            self._held.subtract(dropped)
            self._held = +self._held


class History(Generic[S]):
    """The newest moments at which a chunk had been put out, oldest first."""

    def __init__(
        self, holder: BlockHolder, capacity: int, since: Callable[[], int] | None = None
    ) -> None:
        """Keep at most `capacity` moments; the oldest goes first.

        Args:
            holder: keeps their blocks.
            capacity: 1 or more.
            since: the media time that the loop which leads can go back to; up to `STRETCH` times
                as many moments are kept, so that this one can go back as far.
        """
        assert capacity > 0, "a history without a moment has nothing to go back to"
        self._holder = holder
        self._capacity = capacity
        self._since = since
        self._moments: deque[Moment[S]] = deque()

    def __len__(self) -> int:
        return len(self._moments)

    def __iter__(self) -> Iterator[Moment[S]]:
        return iter(self._moments)

    @property
    def newest(self) -> Moment[S]:
        """The moment after the last chunk that was put out."""
        return self._moments[-1]

    def push(self, moment: Moment[S]) -> None:
        """Keep a moment."""
        self._holder.retain(moment.state.blocks)
        self._moments.append(moment)
        while len(self._moments) > self._capacity and not self._is_needed():
            self.drop_oldest()

    def find(self, chunk: int) -> Moment[S] | None:
        """Return the moment right after `chunk`; None when it is not kept."""
        return next((moment for moment in self._moments if moment.chunk == chunk), None)

    def at_or_before(self, chunk: int) -> Moment[S]:
        """Return the newest moment not after `chunk`; the oldest when all are after it."""
        earlier = [moment for moment in self._moments if moment.chunk <= chunk]
        return earlier[-1] if earlier else self._moments[0]

    def until(self, media_us: int) -> Moment[S]:
        """Return the newest moment that ended by `media_us`; the oldest when none had."""
        earlier = [moment for moment in self._moments if moment.media_us <= media_us]
        return earlier[-1] if earlier else self._moments[0]

    def drop_oldest(self) -> bool:
        """Let the oldest moment go, unless it is the only one; tell whether it went."""
        if len(self._moments) < 2:
            return False
        self._holder.release(self._moments.popleft().state.blocks)
        return True

    def restart_at(self, moment: Moment[S]) -> None:
        """Make `moment` the newest: what came after it goes, and all when it is not of these."""
        self._holder.retain(moment.state.blocks)
        kept = list(self._moments)
        before = kept[: kept.index(moment)] if moment in kept else []
        for dropped in kept[len(before) :]:
            self._holder.release(dropped.state.blocks)
        self._moments = deque([*before, moment])

    def _is_needed(self) -> bool:
        """Tell whether the oldest moment is the only one as old as what can be gone back to."""
        if self._since is None or len(self._moments) > STRETCH * self._capacity:
            return False
        return self._moments[1].media_us > self._since()

    def clear(self) -> None:
        """Let every moment go."""
        for moment in self._moments:
            self._holder.release(moment.state.blocks)
        self._moments.clear()


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[S]):
    """A moment that was kept by name.

    Attributes:
        moment: exact, but its blocks count; None once they were needed.
        durable: what is left then; the derived part is rebuilt. None for a state without blocks.
    """

    chunk: int
    moment: Moment[S] | None
    durable: Durable | None


class Snapshots(Generic[S]):
    """What a session keeps by name: exact while there is room, durable for as long as it lives."""

    def __init__(self, holder: BlockHolder, capacity: int) -> None:
        """Keep at most `capacity`."""
        self._holder = holder
        self._capacity = capacity
        self._by_name: dict[str, Snapshot[S]] = {}

    def has_room(self, name: str) -> bool:
        """Tell whether `name` can be kept."""
        return name in self._by_name or len(self._by_name) < self._capacity

    def get(self, name: str) -> Snapshot[S] | None:
        """Return the snapshot called `name`, or None."""
        return self._by_name.get(name)

    def put(self, name: str, moment: Moment[S], durable: Durable | None) -> None:
        """Keep a moment; an older one of that name goes."""
        self._holder.retain(moment.state.blocks)
        self._let_go(self._by_name.pop(name, None))
        self._by_name[name] = Snapshot(moment.chunk, moment, durable)

    def put_durable(self, name: str, chunk: int, durable: Durable) -> None:
        """Keep what is left of a moment; an older one of that name goes."""
        self._let_go(self._by_name.pop(name, None))
        self._by_name[name] = Snapshot(chunk, None, durable)

    def give_up_blocks(self) -> bool:
        """Have the oldest exact snapshot keep its durable part only; False when there is none."""
        for name, snapshot in self._by_name.items():
            if snapshot.moment and snapshot.moment.state.blocks and snapshot.durable:
                self._let_go(snapshot)
                self._by_name[name] = Snapshot(snapshot.chunk, None, snapshot.durable)
                return True
        return False

    def clear(self) -> None:
        """Let every snapshot go."""
        for snapshot in self._by_name.values():
            self._let_go(snapshot)
        self._by_name.clear()

    def _let_go(self, snapshot: Snapshot[S] | None) -> None:
        if snapshot is not None and snapshot.moment is not None:
            self._holder.release(snapshot.moment.state.blocks)
