"""A deployment: all that an operator decides, in one validated file and REVERIE_* variables.

    server:
      port: 9000
    pool:
      models:
        - name: pocket
          threads: 2

A variable names a field by its path, with two underscores between the parts, and wins over the
file: `REVERIE_SERVER__PORT=9000`, `REVERIE_POOL__MODELS__0__THREADS=2`. Its value is read as YAML.
`REVERIE_CONFIG` names the file when the command line does not. What nobody sets has a safe default;
what nobody knows is refused.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reverie.gpu_pool.options import ModelOptions, PoolOptions
from reverie.rtc.options import ServerOptions
from reverie.sessions.limits import SessionLimits

PREFIX = "REVERIE_"
FILE_VARIABLE = "REVERIE_CONFIG"

FieldPath = tuple[str | int, ...]
"""Where a field is: keys and indices from the top."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One field set from outside the file, and what an error calls its source."""

    path: FieldPath
    value: object
    source: str


class DeploymentError(Exception):
    """The deployment is not valid; the message names each offending field and where it was set."""


class Deployment(BaseModel):
    """What to serve, to how many, and on which address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: PoolOptions = Field(default=PoolOptions(models=(ModelOptions(name="pocket"),)))
    sessions: SessionLimits = Field(default=SessionLimits())
    server: ServerOptions = Field(default=ServerOptions())

    @classmethod
    def read(
        cls,
        file: Path | None = None,
        variables: Mapping[str, str] | None = None,
        settings: Iterable[Setting] = (),
    ) -> Self:
        """Read a deployment; what comes later here wins.

        Args:
            file: YAML; None reads the one that `REVERIE_CONFIG` names, if any.
            variables: the environment, or what stands for it; None is an empty one.
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
    """Refuses a key that is given twice, where YAML would take the last one in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping with each key once."""
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            keys = [key.value for key, _ in node.value]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise yaml.MarkedYAMLError(
                problem=f"the key {twice!r} is given twice", problem_mark=node.start_mark
            )
        return mapping


def _parse(text: str) -> Any:
    return yaml.load(text, _StrictLoader)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        tree = _parse(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DeploymentError(f"cannot read {file}: {error}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise DeploymentError(f"{file} holds {type(tree).__name__}, not fields with values")
    return tree


def _from_variables(variables: Mapping[str, str]) -> list[Setting]:
    return [
        Setting(_path_of(name), _read_value(name, variables[name]), name)
        for name in sorted(variables)
        if name.startswith(PREFIX) and name != FILE_VARIABLE
    ]


def _read_value(name: str, text: str) -> Any:
    try:
        return _parse(text)
    except yaml.YAMLError as error:
        raise DeploymentError(f"cannot read {name}: {error}") from error


def _path_of(name: str) -> FieldPath:
    parts = name.removeprefix(PREFIX).lower().split("__")
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def _nested(path: FieldPath, value: Any) -> Any:
    """Return the tree that holds `value` at `path` and nothing else."""
    for part in reversed(path):
        value = {part: value}
    return value


def _merged(below: Any, above: Any) -> Any:
    """Lay one tree over another: mappings merge, indices reach into lists, all else replaces."""
    if not isinstance(above, dict):
        return above
    if isinstance(below, list) or (below is None and 0 in above):
        items = dict(enumerate(below or []))
        merged = items | {key: _merged(items.get(key), value) for key, value in above.items()}
        whole = list(merged) == list(range(len(merged)))
        return list(merged.values()) if whole else merged
    if isinstance(below, dict):
        return below | {key: _merged(below.get(key), value) for key, value in above.items()}
    return above


def _explain(error: ValidationError, file: Path | None, settings: list[Setting]) -> str:
    lines = ["the deployment is not valid"]
    for problem in error.errors(include_url=False):
        path: FieldPath = problem["loc"]
        sources = [setting.source for setting in settings if _related(path, setting.path)]
        where = " or ".join(sources) or (str(file) if file else "")
        field = ".".join(str(part) for part in path)
        lines.append(f"  {field}: {problem['msg']}" + (f" (set in {where})" if where else ""))
    return "\n".join(lines)


def _related(path: FieldPath, other: FieldPath) -> bool:
    shared = min(len(path), len(other))
    return path[:shared] == other[:shared]
