"""One text stream of a session: its newest utterance, and sending it to the attachments.

Every attachment gets every word. A new one gets the newest utterance so far, in one `text.delta`.
An utterance that is broken off ends with a delta that says `cut`; its unsent words are dropped.
"""

from reverie.engine.emissions import TextOut
from reverie.sessions.attachments.attached_clients import AttachedClients
from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.protocol.media_events import TextDelta
from reverie.sessions.state.session_state import StreamState
from reverie.sessions.streams.pending_turns import PendingTurns
from reverie.sessions.streams.speech_stream import SpeechStream


class TextStream:
    """Sends the text of one stream."""

    def __init__(self, stream: StreamState, attached: AttachedClients, turns: PendingTurns) -> None:
        self.stream = stream
        self._attached = attached
        self._turns = turns
        self._newest: TextDelta | None = None  # the newest utterance so far
        self._over = 0  # utterances below this number have ended
        self.voice: SpeechStream | None = None  # speaks this text

    def publish(self, out: TextOut) -> None:
        """Send more text; that of a cut utterance is dropped."""
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
        """Send the newest utterance so far to a client that has just attached."""
        if self._newest is not None and self._newest.text:
            attachment.outbox.put(self._newest)

    def cut(self, next_utterance: int | None = None) -> None:
        """End the present utterance for all attachments, and drop its unsent words.

        Args:
            next_utterance: the first that is not cut; None: the one after the newest.
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
        """End the stream; an unfinished utterance is cut."""
        if self._newest is not None and not self._newest.final:
            self.cut()
        self.stream.reason = reason
