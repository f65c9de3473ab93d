"""What can be cancelled in a session: a tree of scopes; cancelling one cancels what is inside it.

session
└── program
    └── loop, one for each
        └── stream, one for each output
"""

from collections.abc import Callable, Iterator
from enum import StrEnum

OnCancel = Callable[[str], None]
"""Called once with the reason, at once, on the event loop."""


class ScopeKind(StrEnum):
    """How much a scope holds."""

    SESSION = "session"
    PROGRAM = "program"
    LOOP = "loop"
    STREAM = "stream"


class CancelScope:
    """One node of the tree. Cancelling is final: the first reason stands."""

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

    def walk(self) -> Iterator["CancelScope"]:
        """Yield this scope and all inside it, outermost first."""
        yield self
        for scope in self._inside:
            yield from scope.walk()

    def find(self, kind: ScopeKind, name: str) -> "CancelScope":
        """Return the scope of that kind and name.

        Raises:
            LookupError: there is none inside.
        """
        for scope in self.walk():
            if scope.kind is kind and scope.name == name:
                return scope
        raise LookupError(f"no {kind} scope {name!r} in {self.name!r}")
