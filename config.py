"""A deployment: every setting of an operator, from one validated file and REVERIE_* variables.

    server:
      port: 9000
    pool:
      models:
        - name: pocket
          sessions: 8

A variable names a field by its path, with two underscores between the parts, and wins over the
file: `REVERIE_SERVER__PORT=9000`, `REVERIE_POOL__MODELS__0__SESSIONS=8`. Its value is read as YAML.
`REVERIE_CONFIG` names the file when the command line does not. Every setting has a safe default; an
unknown one is refused.
"""

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.rtc.options import ServerOptions
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.streams.voice_options import VoiceOptions

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PREFIX = "REVERIE_"
FILE_VARIABLE = "REVERIE_CONFIG"

CLIENT_VARIABLES = frozenset({"REVERIE_URL", "REVERIE_OWNER"})
"""Not settings of a deployment: a client reads the server's address from them."""

FieldPath = tuple[str | int, ...]
"""The place of a field: keys and indices from the top."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One field that is set outside the file, and the name of its source in an error."""

    path: FieldPath
    value: object
    source: str


class DeploymentError(Exception):
    """The deployment is not valid; the message names each offending field and where it was set."""


class Deployment(BaseModel):
    """The models to serve, the number of sessions, the address, and all other settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: PoolOptions = Field(default=PoolOptions(models=(ModelOptions(name="pocket"),)))
    sessions: SessionLimits = Field(default=SessionLimits())
    recordings: RecordingOptions = Field(default=RecordingOptions())
    voice: VoiceOptions = Field(default=VoiceOptions())
    server: ServerOptions = Field(default=ServerOptions())

    @classmethod
    def of_process(cls, file: Path | None = None, settings: Iterable[Setting] = ()) -> Self:
        """Read the deployment of this process, for `reverie serve` and for an engine.

        Args:
            file: as in `read`.
            settings: from the command line.

        Raises:
            DeploymentError: it cannot be read, or is not valid.
        """
        return cls.read(file, os.environ, settings)

    @classmethod
    def read(
        cls,
        file: Path | None = None,
        variables: Mapping[str, str] | None = None,
        settings: Iterable[Setting] = (),
    ) -> Self:
        """Read a deployment; a later argument wins over an earlier one.

        Args:
            file: YAML; None reads the one that `REVERIE_CONFIG` names, if any.
            variables: the environment; None is an empty one.
            settings: from the command line.

        Raises:
            DeploymentError: it cannot be read, or is not valid.
        """
        variables = variables or {}
        if file is None and FILE_VARIABLE in variables:
            file = Path(variables[FILE_VARIABLE])
        tree: Any = {"pool": {"models": [{"name": "pocket"}]}}
        if file is not None:
            tree = _merged(tree, _read_file(file))
        chosen = [*_from_variables(variables), *settings]
        for setting in chosen:
            tree = _merged(tree, _nested(setting.path, setting.value))
        try:
            return cls.model_validate(tree)
        except ValidationError as error:
            raise DeploymentError(_explain(error, file, chosen)) from error


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that is given twice, where YAML would silently take the last one."""

    def __init__(self, text: str, source: str) -> None:
        """Read `text`; errors say that it is in `source`."""
        try:
            super().__init__(text)
        except yaml.reader.ReaderError as error:
            error.name = source
            raise
        self.name = source

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping, and refuse a repeated key."""
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            keys = [key.value for key, _ in node.value]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise yaml.MarkedYAMLError(
                problem=f"the key {twice!r} is given twice", problem_mark=node.start_mark
            )
        return mapping


def _parse(text: str, source: str) -> Any:
    loader = _StrictLoader(text, source)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _read_file(file: Path) -> dict[str, Any]:
    try:
        tree = _parse(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DeploymentError(f"cannot read {file}: {error}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise DeploymentError(f"{file} must be a mapping of settings, not {type(tree).__name__}")
    return tree


def _from_variables(variables: Mapping[str, str]) -> list[Setting]:
    return [
        Setting(_path_of(name), _read_value(name, variables[name]), name)
        for name in sorted(variables)
        if name.startswith(PREFIX) and name != FILE_VARIABLE and name not in CLIENT_VARIABLES
    ]


def _read_value(name: str, text: str) -> Any:
    try:
        return _parse(text, name)
    except yaml.YAMLError as error:
        raise DeploymentError(f"cannot read {name}: {error}") from error


def _path_of(name: str) -> FieldPath:
    parts = name.removeprefix(PREFIX).lower().split("__")
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def _nested(path: FieldPath, value: Any) -> Any:
    """Return a tree with `value` at `path` and nothing else."""
    for part in reversed(path):
        value = {part: value}
    return value


def _merged(below: Any, above: Any) -> Any:
    """Lay one tree over another: mappings merge, indices address list items, all else replaces.

    A single value in place of settings stays, so that it is refused and not silently replaced.
    """
    if not isinstance(above, dict):
        return above
    if isinstance(below, list) or (below is None and 0 in above):
        items = dict(enumerate(below or []))
        merged = items | {key: _merged(items.get(key), value) for key, value in above.items()}
        whole = list(merged) == list(range(len(merged)))
        return list(merged.values()) if whole else merged
    if isinstance(below, dict):
        return below | {key: _merged(below.get(key), value) for key, value in above.items()}
    return above if below is None else below


_PLAIN = {
    "model_type": "must be a mapping of settings, not a single value",
    "tuple_type": "should be a list",
}
"""Messages in the words of the file instead of Python's, by pydantic's type of error."""


def _explain(error: ValidationError, file: Path | None, settings: list[Setting]) -> str:
    lines = ["the deployment is not valid"]
    problems = error.errors(include_url=False)
    for problem in problems:
        path: FieldPath = problem["loc"]
        if problem["type"] == "too_short" and any(
            len(other["loc"]) > len(path) and _related(other["loc"], path) for other in problems
        ):
            continue  # the list is too short only because its items are wrong
        where = " or ".join(_sources(problem, settings)) or (str(file) if file else "")
        field = ".".join(str(part) for part in path)
        lines.append(f"  {field}: {_words(problem)}" + (f" (set in {where})" if where else ""))
    return "\n".join(lines)


def _sources(problem: "ErrorDetails", settings: list[Setting]) -> list[str]:
    """Return the sources of a field other than the file."""
    path = problem["loc"]
    if not isinstance(problem["input"], dict | list):  # then no setting below it can be the cause
        settings = [setting for setting in settings if len(setting.path) <= len(path)]
    return [setting.source for setting in settings if _related(path, setting.path)]


def _words(problem: "ErrorDetails") -> str:
    if problem["type"] == "extra_forbidden":
        *above, name = problem["loc"]
        meant = _meant(tuple(above), str(name))
        return "unknown setting" + (f"; did you mean {meant}?" if meant else "")
    plain = _PLAIN.get(problem["type"], problem["msg"])
    return plain.removeprefix("Value error, ")


def _meant(above: FieldPath, name: str) -> str:
    """Return the likely meaning of a name: a similar one here, or the same one elsewhere."""
    fields: Any = Deployment
    for part in above:
        inner = get_args(fields) if isinstance(part, int) else ()
        fields = inner[0] if inner else fields.model_fields[part].annotation
    near = get_close_matches(name, fields.model_fields, n=1)
    elsewhere = (path for path in _settings(Deployment) if path.rpartition(".")[2] == name)
    return near[0] if near else next(elsewhere, "")


def _settings(model: type[BaseModel], above: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _settings(kind, f"{above}{name}.")
        yield f"{above}{name}"


def _related(path: FieldPath, other: FieldPath) -> bool:
    shared = min(len(path), len(other))
    return path[:shared] == other[:shared]
