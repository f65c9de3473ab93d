"""A public agent on a disk: which files it is, and what its actions are called."""

from dataclasses import dataclass
from pathlib import Path

from reverie.models.contract.errors import CheckpointError, OptionError
from reverie.models.contract.instance import AUTO
from reverie.models.diamond.atari import ACTIONS, FULL, game_called, numbered
from reverie.models.services.checkpoints import SHOWN, CheckpointManifest, StoredTensor


def _part(name: str) -> CheckpointManifest:
    def rename(stored: str) -> str | None:
        before, dot, own = stored.partition(".")
        return own if dot and before == name else None

    return CheckpointManifest(f"DIAMOND agent, {name}", ("*.pt", "model/*.pt"), rename)


WEIGHTS = {"world": _part("denoiser"), "upsampler": _part("upsampler")}


@dataclass(frozen=True, slots=True)
class Agent:
    """A public agent.

    Attributes:
        files: its weights.
        folder: where they are.
        starts: the folder of what its game begins with.
    """

    files: tuple[Path, ...]
    folder: Path
    starts: Path

    @classmethod
    def find(cls, path: Path, parts: str | None = None) -> "Agent":
        """Find an agent that is named by its file or its folder.

        Args:
            path: the file or the folder.
            parts: the folder of what its game begins with; None: that is next to it.

        Raises:
            CheckpointError: there is none, or there are several.
        """
        if not path.exists():
            raise CheckpointError(f"{path}: no such file or folder")
        starts = None if parts is None else Path(parts)
        if path.is_file():
            return cls((path,), path.parent, starts or path.parent)
        files = WEIGHTS["world"].find(path)
        if not files:
            raise CheckpointError(f"{path} holds no agent (*.pt)")
        if len(files) > 1:
            names = ", ".join(file.name for file in files[:SHOWN])
            raise CheckpointError(
                f"{path} holds {len(files)} agents ({names}): name the file of one as checkpoint"
            )
        return cls(files, path, starts or path)

    @property
    def version(self) -> str:
        """What tells these weights from others."""
        stats = [file.stat() for file in self.files]
        return "-".join(f"{stat.st_size:x}.{stat.st_mtime_ns:x}" for stat in stats)

    def stored(self, part: str) -> dict[str, StoredTensor]:
        """Return the tensors of one network.

        Raises:
            CheckpointError: they cannot be read.
        """
        return WEIGHTS[part].tensors(self.files)

    def actions(self, count: int, wanted: str) -> tuple[str, ...]:
        """Return the names of an Atari agent's actions; numbers where its game is not known.

        Raises:
            OptionError: the game that is wanted has another number of actions.
        """
        if wanted != AUTO:
            game = game_called(wanted)
            known = ACTIONS[game] if game else ()
            if len(known) != count:
                has = f"has {len(known)} actions" if known else "is none of Atari 100k"
                raise OptionError(f"game: {wanted} {has}, and {self.files[0]} knows {count}")
            return known
        if count == len(FULL):
            return FULL
        for name in (self.files[0].stem, self.folder.resolve().name):
            game = game_called(name)
            if game is not None and len(ACTIONS[game]) == count:
                return ACTIONS[game]
        return numbered(count)
