"""What people see of training without a line of script: a form to enter, trainees, reports, exports.

    /training/           who you are, and what you may do
    /training/enter      a trainee's name and code, or the trainer's token; a form, or JSON from the page
    /training/leave      nobody any more
    /training/add, /training/code, /training/delete     trainees, by the trainer; one's own data, by oneself
    /training/report, /training/cohort                  HTML, or with `as=pdf` PDF
    /training/export     with `as=csv`, `parquet` or `json` (xAPI), of one trainee or of all

What changes something is a POST, and what is secret is in its body: addresses are kept in histories and logs.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from viscera.errors import InputError, VisceraError
from viscera.server.classroom import Wrong
from viscera.server.entrance import NOBODY, Visitor
from viscera.server.guard import message_page
from viscera.server.hub import Hub
from viscera.timing import TICK

if TYPE_CHECKING:
    from viscera.training.store import Counted

FRESH = {"Cache-Control": "no-store"}
LONGEST_BODY = 4_096
"""Of a form [bytes]."""
KINDS = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "pdf": "application/pdf",
}


class Given(msgspec.Struct):
    """What somebody shows or asks for."""

    trainee: str = ""
    code: str = ""
    trainer: str = ""


class TrainingPages:
    """Of one server."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._room = hub, hub.classroom

    def routes(self) -> list[BaseRoute]:
        change = {"enter": self.enter, "leave": self.leave, "add": self.add, "code": self.code, "delete": self.delete}
        return [
            Route("/training", lambda request: RedirectResponse("/training/")),
            Route("/training/", self.home),
            *(Route(f"/training/{name}", action, methods=["POST"]) for name, action in change.items()),
            Route("/training/report", self.report),
            Route("/training/cohort", self.report),
            Route("/training/export", self.export),
        ]

    def _who(self, request: Request) -> Visitor:
        return self._room.entrance.who(request.cookies.get(self._room.entrance.cookie))

    # --- entering and leaving ---

    async def enter(self, request: Request) -> Response:
        as_json = request.headers.get("content-type", "").startswith("application/json")
        try:
            given = await _given(request)
            work = self._room.enter
            visitor, code = await asyncio.to_thread(
                work, given.trainee.strip(), given.code.strip(), given.trainer.strip(), self._who(request)
            )
        except (Wrong, InputError) as error:
            status = 403 if isinstance(error, Wrong) else 400
            told = str(error) if isinstance(error, Wrong) else f"{error.message} {error.hint}"
            if as_json:
                return JSONResponse({"error": _sentence(told)}, status, headers=FRESH)
            return await self._show(request, NOBODY, status, said=_sentence(told))
        self._room.entrance.leave(request.cookies.get(self._room.entrance.cookie))
        cookie, ticket = self._room.entrance.enter(visitor)
        if as_json:
            answer: Response = JSONResponse(self._about(visitor) | {"code": code, "ticket": ticket}, headers=FRESH)
        elif code:
            answer = await self._show(request, visitor, said=_code_is(visitor.trainee, code))
        else:
            answer = RedirectResponse("./", status_code=303)
        answer.set_cookie(
            self._room.entrance.cookie, cookie, httponly=True, samesite="strict", path="/", secure=self._room.secure
        )
        return answer

    def _about(self, visitor: Visitor) -> dict[str, Any]:
        cohort = self._room.there and self._room.may_see(None, visitor)
        return {"trainee": visitor.trainee, "trainer": visitor.trainer, "cohort": cohort}

    async def leave(self, request: Request) -> Response:
        self._room.entrance.leave(request.cookies.get(self._room.entrance.cookie))
        as_json = request.headers.get("content-type", "").startswith("application/json")
        answer = JSONResponse(self._about(NOBODY)) if as_json else RedirectResponse("./", status_code=303)
        answer.delete_cookie(self._room.entrance.cookie, path="/", httponly=True, samesite="strict")
        return answer

    # --- trainees ---

    async def add(self, request: Request) -> Response:
        return await self._change(request, lambda name: _code_is(name, self._room.store.add(name)), trainer=True)

    async def code(self, request: Request) -> Response:
        def work(name: str) -> str:
            self._room.entrance.forget(name)
            return _code_is(name, self._room.store.new_code(name))

        return await self._change(request, work, trainer=True)

    async def delete(self, request: Request) -> Response:
        def work(name: str) -> str:
            count = self._room.store.delete(name)
            self._room.entrance.forget(name)
            return f"{name} and {count} trials are deleted. Recordings are files of their own; their names are gone."

        return await self._change(request, work, trainer=False)

    async def _change(self, request: Request, work: Callable[[str], str], *, trainer: bool) -> Response:
        """Something about the trainee that the form names; by a trainer, or else by themselves too."""
        visitor = self._who(request)
        try:
            name = " ".join((await _given(request)).trainee.split())
            allowed = self._room.there and self._room.may_see(None if trainer else name, visitor)
            if not allowed:
                return self._refuse()
            said = await asyncio.to_thread(work, name)
        except InputError as error:
            return await self._show(request, visitor, 400, said=_sentence(f"{error.message} {error.hint}"))
        return await self._show(request, self._who(request), said=said)

    # --- pages ---

    async def home(self, request: Request) -> Response:
        return await self._show(request, self._who(request))

    async def _show(self, request: Request, visitor: Visitor, status: int = 200, said: str = "") -> Response:
        page = await asyncio.to_thread(self._page, visitor, said)
        return HTMLResponse(page, status, headers=FRESH)

    def _page(self, visitor: Visitor, said: str) -> str:
        from viscera.training.report import STYLE

        parts = [f"<p class=said>{escape(said)}</p>"] if said else []
        if not self._room.there:
            parts.append("<p>No trials are kept here: start the server with <code>--training</code>.</p>")
        if visitor != NOBODY:
            who = " and ".join(filter(None, (visitor.trainee, "a trainer" if visitor.trainer else "")))
            leave = _form("leave", [], "Leave")
            parts.append(f"<div class=row><span>You are <b>{escape(who)}</b>.</span>{leave}</div>")
        if self._room.there and visitor.trainee:
            parts.append(_own(visitor.trainee))
        if self._room.there and self._room.may_see(None, visitor):
            parts.append(_cohort(self._room.store.counts()))
        if not visitor.trainee and self._room.there:
            parts.append(_ENTER_TRAINEE)
        if not visitor.trainer and self._room.has_trainers:
            parts.append(_ENTER_TRAINER)
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>Training</title><style>{STYLE}{_STYLE}</style>"
            f'<nav><a href="../">Back to the theatre</a></nav><h1>Training</h1>{"".join(parts)}'
        )

    async def report(self, request: Request) -> Response:
        cohort = request.url.path.endswith("/cohort")
        trainee = None if cohort else request.query_params.get("trainee", "")
        if not self._room.there or not self._room.may_see(trainee, self._who(request)):
            return self._refuse()
        if request.query_params.get("as") == "pdf":
            return await self._file(trainee, "pdf")
        page = await asyncio.to_thread(self._report, trainee)
        return HTMLResponse(page, headers=FRESH)

    def _report(self, trainee: str | None) -> str:
        from viscera.training.report import html

        store = self._room.store
        links = _downloads(trainee, "PDF", "CSV", "Parquet", "xAPI")
        return html(
            store.trials(), trainee, watch_address, lambda one: f"./report?trainee={quote(one.trainee)}",
            store.every_word(), self._hub.choices.titles, above=f'<nav><a href="./">Training</a></nav>{links}',
        )  # fmt: skip

    async def export(self, request: Request) -> Response:
        kind, trainee = request.query_params.get("as", ""), request.query_params.get("trainee")
        if not self._room.there or not self._room.may_see(trainee, self._who(request)):
            return self._refuse()
        if kind not in KINDS or kind == "pdf":
            return HTMLResponse(message_page("No such file", "Ask for csv, parquet or json."), 404)
        return await self._file(trainee, kind)

    async def _file(self, trainee: str | None, kind: str) -> Response:
        try:
            data = await asyncio.to_thread(self._write, trainee, kind)
        except VisceraError as error:
            return HTMLResponse(message_page("Nothing to hand out", f"{error.message} {error.hint}"), 404)
        name = re.sub(r"[^A-Za-z0-9]+", "-", trainee or "cohort").strip("-") or "trainee"
        headers = FRESH | {"Content-Disposition": f'attachment; filename="viscera-{name}.{kind}"'}
        return Response(data, media_type=KINDS[kind], headers=headers)

    def _write(self, trainee: str | None, kind: str) -> bytes:
        from viscera.training import export, report

        store = self._room.store
        with tempfile.TemporaryDirectory(prefix="viscera-") as folder:
            path = Path(folder) / f"trials.{kind}"
            if kind == "pdf":
                report.write(store.trials(), trainee, path, store.every_word(), self._hub.choices.titles)
            else:
                export.write(store.trials(trainee), path)
            return path.read_bytes()

    def _refuse(self) -> Response:
        if not self._room.there:
            return HTMLResponse(message_page("No trials are kept", "Start the server with --training."), 404)
        text = "Enter first, under Training: a trainee with their code, a trainer with the token."
        return HTMLResponse(message_page("Not for everybody", text), status_code=403)


def watch_address(trial: Any) -> str:
    """Where a trial is seen again, from its beginning; empty where it was not recorded."""
    begin = max(0.0, TICK * trial.tick - trial.time)
    name = PurePath(trial.recording).with_suffix(".h5").name if trial.recording else ""
    return f"../?watch={quote(name)}&at={begin:.1f}" if name else ""


async def _given(request: Request) -> Given:
    """The body of a request, a form or JSON; refuses what is neither."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_BODY:
            raise InputError("this is too long.", f"Send at most {LONGEST_BODY} bytes.")
    try:
        if request.headers.get("content-type", "").startswith("application/json"):
            return msgspec.json.decode(body, type=Given)
        told = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        return msgspec.convert(told, Given)
    except (msgspec.MsgspecError, ValueError):
        raise InputError("this form cannot be read.", "Reload the page and try again.") from None


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _code_is(name: str, code: str) -> str:
    return f"The code of {name} is {code}. Write it down: it is shown this once, and kept nowhere."


# --- HTML ---

_STYLE = """form{display:inline-flex;gap:8px;flex-wrap:wrap;align-items:end;margin:0}
.row{display:flex;gap:16px;align-items:center}
label{display:flex;flex-direction:column;font-size:13px;color:#5f6d74}
input{font:inherit;padding:6px 10px;border:1px solid #b9c4ca;border-radius:8px;min-width:12em}
button{font:inherit;font-size:14px;padding:6px 14px;border-radius:8px;border:1px solid #b9c4ca;background:#fff;
color:#1b2529;cursor:pointer}
button.go{background:#1b8f86;border-color:#1b8f86;color:#fff}button.danger{border-color:#d3543f;color:#b23a27}
.said{background:#e6f3f1;border-left:4px solid #1b8f86;padding:10px 14px;border-radius:6px}
td .downloads{margin:2px 0;flex-wrap:nowrap}
.people td:nth-child(2){color:#5f6d74;font-size:13px}td .button,td button{padding:3px 10px;font-size:13px}
td details p{margin:6px 0}section{border-top:1px solid #dde3e6;margin-top:24px;padding-top:8px}
.downloads{display:flex;flex-wrap:wrap;gap:6px}
@media(max-width:640px){tr,td{display:block}th{display:none}tr+tr{border-top:1px solid #dde3e6;padding-top:8px}
td .downloads{flex-wrap:wrap}}
section h2{border:0;margin:6px 0;padding:0}
"""


def _form(action: str, fields: Sequence[str], word: str, kind: str = "", title: str = "") -> str:
    button = f'<button class="{kind}" title="{escape(title)}">{escape(word)}</button>'
    return f'<form method=post action="./{action}">{"".join(fields)}{button}</form>'


def _field(name: str, label: str, kind: str = "text", more: str = "") -> str:
    return f"<label>{escape(label)}<input name={name} type={kind} autocomplete=off {more}></label>"


def _hidden(name: str) -> str:
    return f'<input type=hidden name=trainee value="{escape(name)}">'


_ENTER_TRAINEE = (
    "<section><h2>Enter as a trainee</h2><p class=note>A pseudonym will do. The first time, leave the code empty and "
    "one is made for you, or choose your own.</p>"
    + _form(
        "enter",
        [_field("trainee", "Name", more="required maxlength=120"), _field("code", "Code", "password")],
        "Enter",
        "go",
    )
    + "</section>"
)
_ENTER_TRAINER = (
    "<section><h2>Enter as a trainer</h2>"
    + _form("enter", [_field("trainer", "Trainer's token", "password", "required")], "Enter", "go")
    + "</section>"
)


def _downloads(trainee: str | None, *words: str) -> str:
    """Ways out, all or those that are named."""
    page, after = ("cohort", "") if trainee is None else ("report", f"trainee={quote(trainee)}")
    links = {
        "Report": (f"./{page}?{after}", "Learning curves, here"),
        "PDF": (f"./{page}?{after}&as=pdf", "The report, to print or send"),
        "CSV": (f"./export?{after}&as=csv", "All numbers, for a spreadsheet"),
        "Parquet": (f"./export?{after}&as=parquet", "All numbers, for programs that analyse data"),
        "xAPI": (f"./export?{after}&as=json", "Statements for a learning-record store"),
    }
    shown = "".join(
        f'<a class=button href="{escape(at)}" title="{title}">{word}</a> '
        for word, (at, title) in links.items()
        if word in words or not words
    )
    return f"<p class=downloads>{shown}</p>"


def _delete(name: str) -> str:
    sure = _form("delete", [_hidden(name)], f"Delete all of {name}", "danger")
    return f"<details><summary>Delete…</summary><p class=note>This cannot be undone.</p>{sure}</details>"


def _new_code(name: str) -> str:
    """Folded, as deletion is: one press too many would lock somebody out."""
    sure = _form("code", [_hidden(name)], f"New code for {name}", title="Where the old one is lost")
    return f"<details><summary>New code…</summary><p class=note>The old one ends at once.</p>{sure}</details>"


def _own(name: str) -> str:
    return f"<section><h2>Your trials</h2>{_downloads(name)}{_delete(name)}</section>"


def _cohort(counts: dict[str, Counted]) -> str:
    rows = "".join(
        f"<tr><td><b>{escape(name)}</b></td><td>{_told(one)}</td><td>{_downloads(name, 'Report', 'PDF', 'CSV')}</td>"
        f"<td>{_new_code(name)}</td>"
        f"<td>{_delete(name)}</td></tr>"
        for name, one in counts.items()
    )
    table = f"<table class=people><tr><th>Trainee</th><th>Trials</th><th></th><th></th><th></th></tr>{rows}</table>"
    add = _form("add", [_field("trainee", "New trainee", more="required maxlength=120")], "Add", "go")
    note = (
        "<p class=note>A report has the learning curves. CSV opens in a spreadsheet, Parquet is for programs that "
        "analyse data, xAPI for a learning-record store.</p>"
    )
    return f"<section><h2>Everybody</h2>{_downloads(None)}{note}{table if rows else ''}<p>{add}</p></section>"


def _told(one: Counted) -> str:
    if one.last is None:
        return "none yet"
    return f"{one.trials}, {one.passed} passed, last {one.last:%Y-%m-%d}"
