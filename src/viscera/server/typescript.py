"""Writes `web/src/protocol.ts` from `messages.py`, so that the browser and the server cannot disagree.

    python -m viscera.server.typescript [--check] [PATH]

`--check` writes nothing and exits with 1 when the file is not current. Structs and the dataclasses that they hold
become interfaces, docstrings become comments. A field with a default may be left out by the browser, which sends it;
the server always sends every field.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import types
import typing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from viscera.instruments.instrument import OFF_THE_WIRE
from viscera.server import messages

DEFAULT_PATH = Path(__file__).parents[3] / "web" / "src" / "protocol.ts"
HEADER = "// Generated from src/viscera/server/messages.py by `python -m viscera.server.typescript`. Do not edit.\n"

_PLAIN = {int: "number", float: "number", str: "string", bool: "boolean", bytes: "Uint8Array", type(None): "null"}


@dataclasses.dataclass
class _Record:
    """A struct or dataclass on its way to an interface."""

    name: str
    note: str | None
    tag: str | None
    fields: list[tuple[str, Any, bool, str | None]]
    """Name, type, whether it has a default, note."""


def generate() -> str:
    """The whole text of `protocol.ts`."""
    notes = _docstrings(ast.parse(inspect.getsource(messages)))
    names = {hint: name for name, hint in vars(messages).items() if typing.get_origin(hint) is tuple}
    blocks = [HEADER]
    for name, value in vars(messages).items():
        if name.isupper() and isinstance(value, int | float):
            blocks.append(_comment(notes.get(name)) + f"export const {name} = {value!r};\n")
    for hint, name in names.items():
        blocks.append(f"export type {name} = {_type(hint, {})};\n")
    unions = {name: value for name, value in vars(messages).items() if isinstance(value, types.UnionType)}
    structs = [v for k, v in vars(messages).items() if _is_struct(v) and not k.startswith("_")]
    sent = _held(typing.get_args(messages.ClientMessage))
    for kind in _held(structs):
        blocks.append(_interface(_record(kind), names, kind in sent))
    for name, value in unions.items():
        union = " | ".join(member.__name__ for member in typing.get_args(value))
        blocks.append(f"export type {name} = {union};\n")
    return "\n".join(blocks)


def _held(kinds: typing.Iterable[type]) -> list[type]:
    """These types and all structs and dataclasses in their fields, each once, what is held first."""
    found: list[type] = []

    def visit(hint: object) -> None:
        if _is_struct(hint) or _is_dataclass(hint):
            kind = typing.cast(type, hint)
            if kind not in found:
                for _, inner, _, _ in _record(kind).fields:
                    visit(inner)
                found.append(kind)
        for argument in typing.get_args(hint):
            visit(argument)

    for kind in kinds:
        visit(kind)
    return found


def _is_struct(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct)


def _is_dataclass(value: object) -> bool:
    return isinstance(value, type) and dataclasses.is_dataclass(value)


def _record(kind: type) -> _Record:
    module = sys.modules[kind.__module__]
    notes = _docstrings(ast.parse(inspect.getsource(module)))
    if _is_struct(kind):
        hints = typing.get_type_hints(kind)
        struct = typing.cast(type[msgspec.Struct], kind)
        rows = [(f.name, hints[f.name], not f.required) for f in msgspec.structs.fields(struct)]
        tag = struct.__struct_config__.tag
    else:
        # One by one: what stays off the wire may name types that are not there at run time.
        sent = [f for f in dataclasses.fields(kind) if not f.metadata.get(OFF_THE_WIRE)]
        rows = [(f.name, eval(str(f.type), vars(_home(kind, f.name))), _has_default(f)) for f in sent]
        tag = None
    fields = [(name, hint, default, notes.get(f"{kind.__name__}.{name}")) for name, hint, default in rows]
    return _Record(kind.__name__, notes.get(kind.__name__), typing.cast(str | None, tag), fields)


def _home(kind: type, field: str) -> types.ModuleType:
    """The module in whose words a field's type is written: that of the class which has it first."""
    return next(sys.modules[base.__module__] for base in kind.__mro__ if field in vars(base).get("__annotations__", {}))


def _has_default(field: Any) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _interface(record: _Record, names: dict[object, str], sent_by_browser: bool) -> str:
    lines = [_comment(record.note) + f"export interface {record.name} {{"]
    if record.tag is not None:
        lines.append(f'  type: "{record.tag}";')
    for name, hint, default, note in record.fields:
        optional = "?" if sent_by_browser and default else ""
        lines.append(f"{_comment(note, '  ')}  {name}{optional}: {_type(hint, names)};")
    return "\n".join([*lines, "}", ""])


def _type(hint: object, names: dict[object, str]) -> str:
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint]
    if hint in names:
        return names[hint]
    if _is_struct(hint) or _is_dataclass(hint):
        return typing.cast(type, hint).__name__
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is np.ndarray:
        return "Uint8Array"
    if origin is typing.Literal:
        return " | ".join(f'"{value}"' for value in arguments)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(_type(argument, names) for argument in arguments)
    if origin is list or (origin is tuple and arguments[-1] is Ellipsis):
        inner = _type(arguments[0], names)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if origin is tuple:
        return "[" + ", ".join(_type(argument, names) for argument in arguments) + "]"
    if origin is dict:
        return f"Record<{_type(arguments[0], names)}, {_type(arguments[1], names)}>"
    raise TypeError(f"messages.py uses {hint!r}, which has no TypeScript form here; add it to _type")


def _docstrings(module: ast.Module) -> dict[str, str]:
    """Docstrings of classes, and the strings that follow constants and fields: `Name` or `Class.field` to text."""
    notes: dict[str, str] = {}

    def read(body: list[ast.stmt], prefix: str) -> None:
        for statement, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(statement, ast.ClassDef):
                notes[statement.name] = ast.get_docstring(statement) or ""
                read(statement.body, f"{statement.name}.")
            name = _assigned(statement)
            if name and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                notes[prefix + name] = inspect.cleandoc(str(after.value.value))

    read(module.body, "")
    return notes


def _assigned(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    return None


def _comment(text: str | None, indent: str = "") -> str:
    if not text:
        return ""
    lines = text.splitlines()
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    paths = [Path(argument) for argument in arguments if argument != "--check"]
    path = paths[0] if paths else DEFAULT_PATH
    text = generate()
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"{path} is not current; run `python -m viscera.server.typescript`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
