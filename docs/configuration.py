"""Writes docs/configuration.md from the settings themselves: `python docs/configuration.py`."""

import inspect
import re
import types
import typing
from pathlib import Path

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from reverie.config import Deployment

PAGE = Path(__file__).with_suffix(".md")

HEAD = """# Configuration

`reverie serve` reads a deployment from a YAML file (`--config`, or the variable `REVERIE_CONFIG`)
and from variables; variables win. The name of a variable is the path of its setting in capitals,
with two underscores between the parts: `REVERIE_SERVER__PORT=9000`,
`REVERIE_POOL__MODELS__0__SESSIONS=4`. `Engine.from_deployment()` in a program reads the same. A
setting that does not exist is refused by name.

This page is made from the settings by `python docs/configuration.py`; a test keeps it fresh.
"""


def attribute_texts(model: type[BaseModel]) -> dict[str, str]:
    """Return what the docstring of a model says of each of its fields."""
    doc = inspect.cleandoc(model.__doc__ or "")
    _, _, section = doc.partition("Attributes:\n")
    texts: dict[str, str] = {}
    for entry in re.split(r"\n(?= {4}\S)", "\n" + section):
        name, found, text = entry.strip().partition(":")
        if found and name.isidentifier():
            texts[name] = " ".join(text.split())
    return texts


def nested(annotation: object) -> type[BaseModel] | None:
    """Return the model that a field holds, alone or several of it."""
    for each in (annotation, *typing.get_args(annotation)):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None


def type_text(annotation: object) -> str:
    """Return how a person would say a type."""
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("null" if each is types.NoneType else type_text(each) for each in inside)
    if origin is typing.Annotated:
        return type_text(inside[0])
    if origin is typing.Literal:
        return ", ".join(f"`{each}`" for each in inside)
    if origin is tuple:
        return f"list of {type_text(inside[0])}"
    if origin is dict:
        return f"map of {type_text(inside[1])}"
    names = {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}
    names["SecretStr"] = "secret text"
    name = getattr(annotation, "__name__", str(annotation))
    return names.get(name, name.lower())


def range_text(field: FieldInfo) -> str:
    """Return the bounds of a number or of a length."""
    signs = ((annotated_types.Ge, "ge", "≥"), (annotated_types.Gt, "gt", ">"))
    signs += ((annotated_types.Le, "le", "≤"), (annotated_types.Lt, "lt", "<"))
    bounds = [
        f"{sign} {getattr(each, name):,}"
        for each in field.metadata
        for kind, name, sign in signs
        if isinstance(each, kind)
    ]
    return ", ".join(bounds)


def default_text(field: FieldInfo) -> str:
    """Return the default as YAML would have it."""
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return f"`{value}`" if str(value) else "empty"


def meaning(field: FieldInfo, text: str) -> str:
    """Return what a setting is for, as one sentence in a cell."""
    said = (field.description or text).strip().replace("|", "\\|")
    return said if said.endswith(".") or not said else f"{said}."


def section(model: type[BaseModel], path: str) -> list[str]:
    """Return the table of a model's settings, and those of the models in it."""
    texts, inner = attribute_texts(model), list[str]()
    lines = [f"\n## `{path}`\n", "| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        inside = nested(field.annotation)
        if inside is not None:
            many = typing.get_origin(field.annotation) is tuple
            inner += section(inside, f"{path}.{name}{'[]' if many else ''}")
            continue
        kind = " ".join(filter(None, (type_text(field.annotation), range_text(field))))
        lines.append(
            f"| `{name}` | {kind} | {default_text(field)} | {meaning(field, texts.get(name, ''))} |"
        )
    return (lines if len(lines) > 3 else []) + inner


def page() -> str:
    """Return the whole page."""
    lines = [HEAD]
    for name, field in Deployment.model_fields.items():
        inside = nested(field.annotation)
        assert inside is not None, f"{name} is a group of settings"
        lines += section(inside, name)
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
