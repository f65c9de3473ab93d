"""What the video and audio streams of a session share: who receives them, since when, their end."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Generic, Protocol, TypeVar

from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.state.session_state import SessionState, StreamState


class Subscription(Protocol):
    """One receiver's place in a fan-out."""

    def close(self) -> None:
        """Deliver nothing more."""


class Fanout(Protocol):
    """The encoders of one stream."""

    def flush(self) -> None:
        """Drop what is not encoded yet."""

    def close(self) -> None:
        """Encode nothing more."""


FanoutT = TypeVar("FanoutT", bound=Fanout)
SubscriptionT = TypeVar("SubscriptionT", bound=Subscription)
OutT = TypeVar("OutT")


class MediaStream(ABC, Generic[FanoutT, SubscriptionT, OutT]):
    """One stream of a session, from the loop's output to the outboxes of its receivers."""

    def __init__(
        self, stream: StreamState, session: SessionState, fanout: FanoutT, keep: int
    ) -> None:
        """Encode nothing yet.

        Args:
            stream: what is told of it.
            session: the session that it belongs to.
            fanout: encodes.
            keep: outputs to keep for the first attachment, so that it gets the beginning.
        """
        self.stream = stream
        self.fanout = fanout
        self._session = session
        self._subscriptions: dict[int, SubscriptionT] = {}
        self._receivers: dict[int, Attachment] = {}
        self._unshown: deque[OutT] | None = deque(maxlen=keep)  # None once an attachment has come

    @property
    def has_unshown(self) -> bool:
        """Whether output waits for the first attachment."""
        return bool(self._unshown)

    def show(self, attachment: Attachment) -> None:
        """Begin to fill an outbox; idempotent.

        The first attachment gets what was made so far. A later one gets the newest picture, and
        sound from then on.
        """
        if attachment.key in self._subscriptions or self.stream.reason is not None:
            return
        subscription = self._subscribe(attachment)
        if subscription is not None:
            self._receivers[attachment.key] = attachment
            self._subscriptions[attachment.key] = subscription
        # Also without a subscription: to an attachment without sound the beginning was shown too.
        unshown, self._unshown = self._unshown, None
        for out in unshown or ():
            self._encode(out)

    def hide(self, attachment: Attachment) -> None:
        """Stop filling an outbox; idempotent."""
        subscription = self._subscriptions.pop(attachment.key, None)
        self._receivers.pop(attachment.key, None)
        if subscription is not None:
            subscription.close()

    def cut(self, before_us: int) -> None:
        """Drop everything before a media time: in the encoders and in the outboxes."""
        self.fanout.flush()
        if self._unshown:
            self._unshown.clear()
        for attachment in self._receivers.values():
            attachment.outbox.cut(self.stream.name, before_us)

    def end(self, reason: str) -> None:
        """End the stream for every receiver; nothing of it comes afterwards."""
        self.stream.reason = reason
        for attachment in tuple(self._receivers.values()):
            attachment.outbox.complete(self.stream.name, reason)
            self.hide(attachment)
        self.fanout.close()

    def _encode_or_keep(self, out: OutT) -> None:
        if self._unshown is None:
            self._encode(out)
        else:
            self._unshown.append(out)

    @abstractmethod
    def _encode(self, out: OutT) -> None:
        """Hand output to the encoders."""

    @abstractmethod
    def _subscribe(self, attachment: Attachment) -> SubscriptionT | None:
        """Have an attachment's outbox filled; None when the attachment does not take this kind."""
