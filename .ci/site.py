"""What the site has besides docs/: README, CHANGELOG and CONTRIBUTING as pages, and a page per module.

A hook of MkDocs (see mkdocs.yml). Pages link to source files as the repository has them (`../src/viscera/device.py`),
so that the links work there. Here such a link leads to the module's page in the API reference; a link to any other text
file leads to a page that shows the file. A link to something that does not exist is a warning, and `--strict` makes
that an error.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

PAGES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages of the site that are files in the repository's root."""

SHOWN = {".py": "python", ".mjs": "javascript", ".ts": "typescript", ".toml": "toml", ".json": "json", ".sh": "bash"}
"""Files that get a page of their own when a page links to them, with the language of their text."""

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]*)((?:#[^)\s]*)?\))")

log = logging.getLogger("mkdocs.hooks.site")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    assert config.nav is not None
    config.nav.insert(2, {"API": ["reference/index.md", *_nav_of(_modules())]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for uri, name in PAGES.items():
        # The first page is alone in its section: no list of pages beside it.
        head = "---\nhide: [navigation]\n---\n\n" if uri == "index.md" else ""
        _add(files, config, uri, head + (ROOT / name).read_text(encoding="utf-8"))
    for module in _modules():
        options = "\n    options:\n      show_submodules: false" if _is_package(module) else ""
        _add(files, config, _uri_of(module), f"# `{module}`\n\n::: {module}{options}\n")
    _add(files, config, "reference/index.md", _overview())
    _add(files, config, "decisions/index.md", _decisions())
    for target in sorted(_linked_files(files)):
        _add(files, config, _shown_uri(target), _show(target))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = page.file.src_uri
    if here.startswith("source/"):
        return markdown

    def lead(match: re.Match[str]) -> str:
        target = _repository_path(here, match[2])
        if target is None:
            return match[0]
        uri = _site_uri(target)
        if uri is None:
            log.warning("%s links to %s, which is not in the repository or cannot be shown", here, match[2])
            return match[0]
        return f"{match[1]}{posixpath.relpath(uri, posixpath.dirname(here) or '.')}{match[3]}"

    return LINK.sub(lead, markdown)


def _add(files: Files, config: MkDocsConfig, uri: str, content: str) -> None:
    files.append(File.generated(config, uri, content=content))


def _repository_path(here: str, link: str) -> Path | None:
    """The file or folder that a link on page `here` means, or None where MkDocs finds it by itself."""
    if not link or ":" in link or link.startswith("/"):
        return None
    folder = ROOT if here in PAGES else (ROOT / "docs" / here).parent
    target = Path(posixpath.normpath((folder / link).as_posix()))
    inside = target.is_relative_to(ROOT / "docs") and target != ROOT / "docs" and not target.is_dir()
    return None if inside and here not in PAGES else target


def _site_uri(target: Path) -> str | None:
    """The page that shows a file or folder of the repository."""
    for uri, name in PAGES.items():
        if target == ROOT / name:
            return uri
    if not target.exists():
        return None
    if target.is_relative_to(ROOT / "docs"):
        return target.relative_to(ROOT / "docs").as_posix() + ("/index.md" if target.is_dir() else "")
    module = _module_of(target)
    if module in _modules():
        return _uri_of(module)
    return _shown_uri(target)


def _linked_files(files: Files) -> set[Path]:
    """Files and folders outside docs/ and the package that some page links to."""
    found: set[Path] = set()
    for file in files.documentation_pages():
        if file.src_uri.startswith("reference/"):
            continue
        for match in LINK.finditer(file.content_string):
            target = _repository_path(file.src_uri, match[2])
            if target is not None and (uri := _site_uri(target)) is not None and uri.startswith("source/"):
                found.add(target)
    return found


def _shown_uri(target: Path) -> str:
    name = target.relative_to(ROOT).as_posix()
    return f"source/{name}/index.md" if target.is_dir() else f"source/{name.removesuffix('.md')}.md"


def _show(target: Path) -> str:
    """A page with the text of a file, or the list of what is in a folder."""
    name = target.relative_to(ROOT).as_posix()
    if target.is_dir():
        entries = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
        lines = [f"- `{entry}`" for entry in entries if "__pycache__" not in entry]
        return "\n".join([f"# `{name}/`", "", "In the repository:", "", *lines, ""])
    if target.suffix == ".md":
        # Its own links would lead out of the site.
        return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", target.read_text(encoding="utf-8"))
    text = target.read_text(encoding="utf-8", errors="replace")
    return f"# `{name}`\n\n````{SHOWN.get(target.suffix, 'text')}\n{text}\n````\n"


def _modules() -> list[str]:
    """Public modules of the package, in order: viscera, viscera.anatomy, …"""
    found = [_module_of(path) for path in SOURCE.rglob("*.py")]
    return sorted(name for name in found if not any(part.startswith("_") for part in name.split(".")))


def _module_of(path: Path) -> str:
    if not path.is_relative_to(SOURCE):
        return ""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _is_package(module: str) -> bool:
    return (SOURCE / module.replace(".", "/")).is_dir()


def _uri_of(module: str) -> str:
    path = "/".join(module.split("."))
    return f"reference/{path}/index.md" if _is_package(module) else f"reference/{path}.md"


def _nav_of(modules: list[str]) -> list[Any]:
    """The reference's part of the navigation: a section for each package, its modules in it."""
    sections: dict[str, list[Any]] = {}
    for module in modules:
        package = module if _is_package(module) else module.rpartition(".")[0]
        title = module.removeprefix("viscera.")
        entry = _uri_of(module) if module == package else {title.removeprefix(f"{package[8:]}."): _uri_of(module)}
        sections.setdefault(package, []).append(entry)
    return [{package.removeprefix("viscera."): entries} for package, entries in sorted(sections.items())]


def _decisions() -> str:
    lines = ["# Decisions", "", "One page each: what was decided, why, what was measured, and what was rejected.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def _overview() -> str:
    """The first page of the reference: every package with the first sentence of its docstring."""
    lines = ["# API reference", "", "From the docstrings. Lengths are metres, times seconds, forces newtons.", ""]
    for module in _modules():
        if _is_package(module):
            text = (SOURCE / module.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
            said = re.match(r'"""(.*?)(?:\n\n|""")', text, re.DOTALL)
            sentence = " ".join(said[1].split()) if said else ""
            lines.append(f"- [`{module}`]({_uri_of(module).removeprefix('reference/')}): {sentence}")
    return "\n".join(lines) + "\n"
