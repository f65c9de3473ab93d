"""What can be cancelled in a session: a tree of scopes; cancelling one cancels what is inside it.

session
└── program
    └── loop, one for each
        └── stream, one for each output
"""

from collections.abc import Callable
from enum import StrEnum

OnCancel = Callable[[str], None]
"""Called once with the reason, at once, on the event loop."""


class ScopeKind(StrEnum):
    """What a scope covers."""

    SESSION = "session"
    PROGRAM = "program"
    LOOP = "loop"
    STREAM = "stream"


class CancelScope:
    """One node of the tree. Cancelling is idempotent: the first reason is kept."""

    def __init__(self, kind: ScopeKind, name: str) -> None:
        self.kind = kind
        self.name = name
        self.reason: str | None = None  # set when it is cancelled
        self._inside: list[CancelScope] = []
        self._on_cancel: list[OnCancel] = []

    @property
    def cancelled(self) -> bool:
        """Whether it has been cancelled, by itself or from outside."""
        return self.reason is not None

    def open(self, kind: ScopeKind, name: str) -> "CancelScope":
        """Return a new scope inside this one; inside a cancelled one it is cancelled too."""
        scope = CancelScope(kind, name)
        scope.reason = self.reason
        self._inside.append(scope)
        return scope

    def on_cancel(self, call: OnCancel) -> None:
        """Have `call` called when the scope is cancelled; at once when it is already."""
        if self.reason is None:
            self._on_cancel.append(call)
        else:
            call(self.reason)

    def cancel(self, reason: str) -> None:
        """Cancel what is inside, then this. What is cancelled already keeps its reason."""
        if self.reason is not None:
            return
        for scope in self._inside:
            scope.cancel(reason)
        self.reason = reason
        calls, self._on_cancel = self._on_cancel, []
        for call in calls:
            call(reason)
