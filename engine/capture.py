"""Keeps what was done in each chunk, for sessions that ask for it (`DriverOptions.capture`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reverie.models.contract.behavior import Behavior, BehaviorRecord
from reverie.models.contract.controls import Controls


@dataclass(frozen=True, slots=True)
class CommittedChunk:
    """What is known of a chunk when it commits; whether a viewer ever sees it is not."""

    seed: int
    weights_version: str
    parameters: Mapping[str, float]
    controls: tuple[Controls, ...]
    behavior: Behavior | None


class Capture:
    """Records of the chunks of one session's loop, waiting to be taken.

    A chunk is described as it commits, and counts once its frames are out: one that an interrupt
    drops in between was never part of the session.
    """

    def __init__(self, session: str, loop: str) -> None:
        """Begin empty."""
        self._session = session
        self._loop = loop
        self._pending: CommittedChunk | None = None
        self._records: list[BehaviorRecord] = []

    def committed(
        self,
        seed: int,
        weights_version: str,
        parameters: Mapping[str, float],
        taken: Sequence[Controls],
        behavior: Behavior | None,
    ) -> None:
        """Describe the chunk in progress."""
        # The state of a peer is alive only while the step runs.
        controls = tuple(replace(controls, peers={}) for controls in taken)
        self._pending = CommittedChunk(seed, weights_version, dict(parameters), controls, behavior)

    def shown(self, chunk: int) -> None:
        """Note that the chunk is out."""
        done, self._pending = self._pending, None
        if done is not None:
            self._records.append(
                BehaviorRecord(
                    session=self._session,
                    loop=self._loop,
                    chunk=chunk,
                    seed=done.seed,
                    weights_version=done.weights_version,
                    parameters=done.parameters,
                    controls=done.controls,
                    behavior=done.behavior,
                )
            )

    def drop(self) -> None:
        """Forget the chunk in progress."""
        self._pending = None

    def take(self) -> list[BehaviorRecord]:
        """Return the records since the last call, and forget them."""
        records, self._records = self._records, []
        return records
