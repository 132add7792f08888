"""Writes `web/src/protocol.ts` from `messages.py`, so that the browser and the server cannot disagree.

    python -m viscera.server.typescript [--check] [PATH]

`--check` writes nothing and exits with 1 when the file is not current. Structs become interfaces, docstrings become
comments. A field with a default may be left out by the browser, which sends it; the server always sends every field.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
import typing
from pathlib import Path

import msgspec

from viscera.server import messages

DEFAULT_PATH = Path(__file__).parents[3] / "web" / "src" / "protocol.ts"
HEADER = "// Generated from src/viscera/server/messages.py by `python -m viscera.server.typescript`. Do not edit.\n"

_PLAIN = {int: "number", float: "number", str: "string", bool: "boolean", bytes: "Uint8Array", type(None): "null"}


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
    for name, value in vars(messages).items():
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and not name.startswith("_"):
            blocks.append(_interface(value, names, notes))
    for name, value in vars(messages).items():
        if isinstance(value, types.UnionType):
            union = " | ".join(member.__name__ for member in typing.get_args(value))
            blocks.append(f"export type {name} = {union};\n")
    return "\n".join(blocks)


def _interface(struct: type[msgspec.Struct], names: dict[object, str], notes: dict[str, str]) -> str:
    sent_by_browser = struct in typing.get_args(messages.ClientMessage)
    hints = typing.get_type_hints(struct)
    lines = [_comment(notes.get(struct.__name__)) + f"export interface {struct.__name__} {{"]
    tag = struct.__struct_config__.tag
    if tag is not None:
        lines.append(f'  type: "{tag}";')
    for field in msgspec.structs.fields(struct):
        optional = "?" if sent_by_browser and not field.required else ""
        note = _comment(notes.get(f"{struct.__name__}.{field.name}"), "  ")
        lines.append(f"{note}  {field.name}{optional}: {_type(hints[field.name], names)};")
    return "\n".join([*lines, "}", ""])


def _type(hint: object, names: dict[object, str]) -> str:
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint]
    if hint in names:
        return names[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint.__name__
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return " | ".join(f'"{value}"' for value in arguments)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(_type(argument, names) for argument in arguments)
    if origin is tuple:
        return "[" + ", ".join(_type(argument, names) for argument in arguments) + "]"
    if origin is list:
        inner = _type(arguments[0], names)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
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
