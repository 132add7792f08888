"""Fields of a class in its own `help()`: the texts that stand below them in the source, which Python forgets."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from typing import TypeVar

AnyClass = TypeVar("AnyClass")


class _Explained:
    """A docstring that ends with the fields. They are read from the source when somebody asks, not at import."""

    def __init__(self, kind: type, text: str) -> None:
        self._kind, self._text = kind, text

    def __get__(self, instance: object, owner: type | None = None) -> str:
        lines = [f"{name}: {' '.join(text.split())}" for name, text in _fields(self._kind).items()]
        wrapped = [textwrap.fill(line, 100, subsequent_indent="    ") for line in lines]
        return "\n".join([inspect.cleandoc(self._text), "", *wrapped])


def _fields(kind: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    (body,) = [one.body for one in tree.body if isinstance(one, ast.ClassDef)]
    found = {}
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(field.target)] = str(text.value.value)
    return found


def explained(kind: type[AnyClass]) -> type[AnyClass]:
    """Decorates a dataclass, above `@dataclass`."""
    type.__setattr__(kind, "__doc__", _Explained(kind, kind.__doc__ or ""))
    return kind
