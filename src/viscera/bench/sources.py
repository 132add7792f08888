"""Which sources a measurement depends on, and a digest of them: has the code changed since it was measured?

The dependencies are read from the text, nothing is imported: the module that measures, and every module of ours that it
imports, directly or through others. Counted as imports are also

- the modules of a package that lists itself with `pkgutil.iter_modules`, as `viscera.scenarios` does,
- names of modules in a file that calls `import_module`, and in a command `python -m NAME`,
- files and folders that a module which asks for `__file__` names: beside it, or by their path from the root.

Of the module that measures only the function counts, with everything it names: a further figure in the same file leaves
the others as they are. A package that is imported only because a module lies in it counts with what it imports at once;
what its functions import later is not used. Comments, docstrings, line breaks and the version number change no digest.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

GONE = "gone"
"""Stands for the digest of a source that is asked for and not there."""
LISTS = frozenset({"viscera.bench.registry", "verify.framework"})
"""They list what there is to measure; whoever imports them does not use all that."""
LEDGERS = frozenset({"verify.framework", "viscera.bench.sources", "viscera.bench.report"})
"""They keep what was measured and change no number."""
BUILT = frozenset({"__pycache__", "static", "node_modules"})
"""Folders of things that are made from sources."""
SHOWN = 4
"""How many changed sources are named."""
_PATH = re.compile(r"\w[\w./-]*")
COMMIT_VARIABLE = "VISCERA_COMMIT"
"""Says the commit on a machine that has the files and no git."""


@dataclass(frozen=True)
class Fingerprint:
    """The sources of one measurement."""

    parts: Mapping[str, str]
    """Each module or file with its own digest."""

    @cached_property
    def digest(self) -> str:
        return _hash("\n".join(f"{name} {own}" for name, own in sorted(self.parts.items())).encode())

    def as_text(self) -> str:
        return " ".join(f"{name}:{own}" for name, own in sorted(self.parts.items()))


def parse_parts(text: str) -> dict[str, str]:
    """What `Fingerprint.as_text` wrote."""
    return dict(part.rsplit(":", 1) for part in text.split())


@dataclass(frozen=True)
class State:
    """Whether something that was measured is still about the code as it is."""

    kind: Literal["current", "stale", "unknown", "gone"]
    """Unknown: it was measured before digests were kept. Gone: nothing measures it any more."""
    why: str = ""

    @property
    def is_current(self) -> bool:
        return self.kind == "current"


CURRENT = State("current")
UNKNOWN = State("unknown", "measured before digests were kept")


def state_of(before: Mapping[str, str] | None, now: Fingerprint) -> State:
    """Compares the sources that were measured with those that are there."""
    if before is None:
        return UNKNOWN
    changed = differences(before, now.parts)
    if not changed:
        return CURRENT
    more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
    return State("stale", ", ".join(changed[:SHOWN]) + more)


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What happened to the sources since, in words, one entry for each."""
    words: list[str] = []
    for name in sorted(before.keys() | now.keys()):
        if name not in now or (now[name] == GONE and before.get(name) != GONE):
            words.append(f"{name} is gone" if now.get(name) == GONE else f"{name} is no longer used")
        elif name not in before:
            words.append(f"{name} is new")
        elif before[name] != now[name]:
            words.append(f"{name} changed")
    return words


@dataclass
class SourceTree:
    """The Python packages of one checkout, read once."""

    root: Path
    """What paths that are not modules are relative to."""
    packages: Mapping[str, Path]
    """The folder of each package, by its name."""
    _parsed: dict[str, ast.Module] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _found: dict[tuple[str, bool], frozenset[tuple[str, bool]]] = field(default_factory=dict)
    _beside: dict[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def paths(self) -> dict[str, Path]:
        """Every module by its dotted name."""
        found: dict[str, Path] = {}
        for package, folder in self.packages.items():
            for path in sorted(folder.rglob("*.py")):
                within = path.relative_to(folder).with_suffix("").parts
                within = within[:-1] if within[-1] == "__init__" else within
                found[".".join((package, *within))] = path
        return found

    def fingerprint(self, module: str, function: str | None = None, also: Iterable[str] = ()) -> Fingerprint:
        """The sources of a function, or of a whole module. `also` names modules and paths that the text does not."""
        parts: dict[str, str] = {}
        waiting: list[tuple[str, bool]] = []
        if function is not None and module in self.paths:
            statements = _slice(self._parse(module), function)
            parts[f"{module}.{function}"] = _hash(_canonical(statements).encode()) if statements else GONE
            waiting += self._imports(statements, module, deep=True)
            parts.update(self._data(statements, module))
        else:
            waiting.append((module, True))
        for name in also:
            if name in self.paths:
                waiting.append((name, True))
            else:
                parts.update(_files(self.root / name, self.root) or {name: GONE})
        for name in self._closure(waiting):
            parts[name] = self._digest(name)
            if name in self.paths:
                if name not in self._beside:
                    self._beside[name] = self._data(self._parse(name).body, name)
                parts.update(self._beside[name])
        return Fingerprint(parts)

    def _closure(self, waiting: list[tuple[str, bool]]) -> set[str]:
        """Modules with all that they import. One that is imported by name goes deeper than a mere parent."""
        seen: set[tuple[str, bool]] = set()
        while waiting:
            name, deep = waiting.pop()
            if name in LEDGERS or (name, True) in seen or (name, deep) in seen:
                continue
            seen.add((name, deep))
            if name in self.paths:
                if (name, deep) not in self._found:
                    statements = self._parse(name).body
                    self._found[name, deep] = frozenset(self._imports(statements, name, deep))
                waiting += self._found[name, deep]
        return {name for name, _ in seen}

    def _imports(self, statements: list[ast.stmt], module: str, deep: bool) -> Iterator[tuple[str, bool]]:
        """Modules of ours that these statements import, and whether by name or only as the parent of one."""
        package = module if self.paths[module].name == "__init__.py" else module.rpartition(".")[0]
        yield from self._named(package, by_name=False)
        for node in _walk(statements, deep):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._named(alias.name)
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(node, package)
                inside = [f"{base}.{alias.name}" for alias in node.names]
                yield from self._named(base, by_name=not all(name in self.paths for name in inside))
                for name in inside:
                    if name in self.paths:
                        yield from self._named(name)
        if deep:
            yield from self._dynamic(statements, module, package)

    def _named(self, name: str, by_name: bool = True) -> Iterator[tuple[str, bool]]:
        if name.partition(".")[0] in self.packages:
            yield name, by_name
            while name := name.rpartition(".")[0]:
                yield name, False

    def _dynamic(self, statements: list[ast.stmt], module: str, package: str) -> Iterator[tuple[str, bool]]:
        called, texts = set[str](), set[str]()
        for node in _walk(statements, deep=True):
            if isinstance(node, ast.Call):
                called.add(getattr(node.func, "attr", getattr(node.func, "id", "")))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value.partition(":")[0])
            elif isinstance(node, ast.List | ast.Tuple):
                words = [getattr(word, "value", None) for word in node.elts]
                for flag, name in itertools.pairwise(words):
                    if flag == "-m" and isinstance(name, str):
                        main = f"{name}.__main__"
                        yield from self._named(main if main in self.paths else name)
        if "iter_modules" in called and module not in LISTS:
            for name in self.paths:
                if name.rpartition(".")[0] == package:
                    yield from self._named(name)
        elif "import_module" in called and module not in LISTS:
            for name in texts & self.paths.keys():
                yield from self._named(name)

    def _data(self, statements: list[ast.stmt], module: str) -> dict[str, str]:
        asks, found = False, dict[str, str]()
        folder, base = self.paths[module].parent, self.packages[module.partition(".")[0]].parent
        for node in _walk(statements, deep=True):
            if isinstance(node, ast.Name) and node.id == "__file__":
                asks = True
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _PATH.fullmatch(node.value):
                if (folder / node.value).exists():
                    found |= _files(folder / node.value, base)
                elif "/" in node.value and (self.root / node.value).is_file():
                    found |= _files(self.root / node.value, self.root)
        return found if asks else {}

    def _parse(self, module: str) -> ast.Module:
        if module not in self._parsed:
            self._parsed[module] = ast.parse(self.paths[module].read_bytes(), str(self.paths[module]))
        return self._parsed[module]

    def _digest(self, module: str) -> str:
        if module not in self.paths:
            return GONE
        if module not in self._digests:
            self._digests[module] = _hash(_canonical(self._parse(module).body).encode())
        return self._digests[module]


def our_sources() -> SourceTree:
    """The checkout that runs: the package, and `verify/` where there is one."""
    package = Path(__file__).resolve().parents[1]
    root = package.parents[1]
    packages = {"viscera": package}
    if (root / "verify" / "framework.py").is_file():
        packages["verify"] = root / "verify"
    return SourceTree(root, packages)


def current_commit(tree: SourceTree) -> str | None:
    """The commit of the sources, with a plus when they were changed since; None where nobody knows."""
    # A file such as .git/HEAD may name a branch instead: that is no commit.
    told = os.environ.get(COMMIT_VARIABLE, "").strip()
    if re.fullmatch(r"[0-9a-f]{7,40}\+?", told):
        return told[:12] + ("+" if told.endswith("+") else "")
    folders = [str(folder) for folder in tree.packages.values()] + [str(tree.root / "web" / "src")]
    try:
        head = _git(tree.root, "rev-parse", "--short=12", "HEAD")
        changed = _git(tree.root, "status", "--porcelain", "--", *folders)
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed else head


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.strip()


# --- reading Python ---------------------------------------------------------------------------------------------------


def _slice(tree: ast.Module, function: str) -> list[ast.stmt]:
    """The statements of a module that a function of it needs: those that define a name it uses, and so on. Statements
    that define nothing run in any case; what is done only when the file is the program does not."""
    defining: dict[str, list[ast.stmt]] = {}
    always: list[ast.stmt] = []
    for statement in tree.body:
        if _is_main(statement) or _is_docstring(statement) or _is_type_checking(statement):
            continue
        names = _defined(statement)
        for name in names:
            defining.setdefault(name, []).append(statement)
        if not names:
            always.append(statement)
    if function not in defining:
        return []
    waiting = [*always, *defining[function]]
    needed = set(map(id, waiting))
    while waiting:
        for node in ast.walk(waiting.pop()):
            for statement in defining.get(node.id, []) if isinstance(node, ast.Name) else []:
                if id(statement) not in needed:
                    needed.add(id(statement))
                    waiting.append(statement)
    return [statement for statement in tree.body if id(statement) in needed]


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return []


def _walk(statements: Iterable[ast.AST], deep: bool) -> Iterator[ast.AST]:
    """All nodes; without `deep` those that run when the module is imported. Nothing that is for type checkers."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        if _is_type_checking(node):
            continue
        if not deep and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    kept = package.split(".")
    kept = kept[: len(kept) - node.level + 1]
    return ".".join([*kept, node.module] if node.module else kept)


def _is_docstring(node: ast.AST) -> bool:
    """A string that stands alone, also under a constant or a field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_main(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _is_version(node: ast.AST) -> bool:
    """`__version__ = …`; results say the version themselves."""
    return isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__version__" for one in node.targets)


def _canonical(node: object) -> str:
    """The tree as text, the same in every version of Python: `ast.dump` is not, it has fields that come and go."""
    if isinstance(node, list):
        kept = [one for one in node if not (_is_docstring(one) or _is_version(one))]
        return f"[{','.join(map(_canonical, kept))}]"
    if isinstance(node, ast.AST):
        inside = ((name, getattr(node, name, None)) for name in node._fields if name not in {"kind", "type_comment"})
        return f"{type(node).__name__}({','.join(f'{n}={_canonical(v)}' for n, v in inside if v not in (None, []))})"
    return repr(node)


def _files(path: Path, base: Path) -> dict[str, str]:
    """A file, or the files under a folder that are neither Python nor built, by their paths from `base`."""
    if path.is_file():
        return {path.relative_to(base).as_posix(): _hash(path.read_bytes())}
    found: dict[str, str] = {}
    for one in sorted(path.rglob("*")):
        if one.is_file() and one.suffix not in {".py", ".pyc"} and not BUILT & set(one.relative_to(base).parts):
            found[one.relative_to(base).as_posix().replace(" ", "_")] = _hash(one.read_bytes())
    return found


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
