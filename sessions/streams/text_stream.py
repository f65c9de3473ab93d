"""One text stream of a session: what its newest utterance has said, and who is told.

Everybody who is attached is told every word, and who comes later the newest utterance so far, in
one `text.delta`. An utterance that is broken off is ended by a delta that says `cut`; what of it
was not sent yet is not sent any more.
"""

from reverie.engine.emissions import TextOut
from reverie.sessions.attachments.attached_clients import AttachedClients
from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.protocol.events import TextDelta
from reverie.sessions.state.session_state import StreamState
from reverie.sessions.streams.pending_turns import PendingTurns
from reverie.sessions.streams.speech_stream import SpeechStream


class TextStream:
    """Tells the words of one stream."""

    def __init__(self, stream: StreamState, attached: AttachedClients, turns: PendingTurns) -> None:
        """Say nothing yet."""
        self.stream = stream
        self._attached = attached
        self._turns = turns
        self._newest: TextDelta | None = None  # the newest utterance, as far as it has come
        self._over = 0  # utterances below this number are
        self.voice: SpeechStream | None = None  # speaks what is told here

    def publish(self, out: TextOut) -> None:
        """Tell more text; of an utterance that was cut nothing is told."""
        if out.chunk < self._over or self.stream.reason is not None:
            return
        delta = TextDelta(
            stream=out.stream,
            text=out.text,
            utterance=out.chunk,
            pts_us=out.pts_us,
            final=out.final,
            answers=self._turns.command_of(out.answers),
        )
        before = self._newest
        if before is not None and before.utterance == delta.utterance:
            text = before.text + delta.text
            self._newest = before.model_copy(update={"text": text, "final": delta.final})
        else:
            self._newest = delta
        self._attached.tell(delta)
        if self.voice is not None:
            self.voice.say(delta.text, delta.final)

    def greet(self, attachment: Attachment) -> None:
        """Tell somebody who has just come the newest utterance, as far as it has come."""
        if self._newest is not None and self._newest.text:
            attachment.outbox.put(self._newest)

    def cut(self, next_utterance: int | None = None) -> None:
        """End what is being said for everybody, wherever it is on its way.

        Args:
            next_utterance: the first that is none of it; None: whichever comes next.
        """
        newest = self._newest
        if newest is None:
            return
        self._over = max(self._over, next_utterance or 0, newest.utterance + 1)
        unspoken = self.voice is not None and self.voice.cancel_speech()
        marker = newest.model_copy(update={"text": "", "final": True, "cut": True})
        for attachment in self._attached:
            unsent = attachment.outbox.drop_text(self.stream.name)
            if unsent or unspoken or not newest.final:
                attachment.outbox.put(marker)
        if not newest.final:
            self._newest = newest.model_copy(update={"final": True, "cut": True})

    def end(self, reason: str) -> None:
        """End the stream; an utterance under way is cut."""
        if self._newest is not None and not self._newest.final:
            self.cut()
        self.stream.reason = reason
