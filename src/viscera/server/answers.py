"""What the server answers besides the page and the socket: state and lists for programs, films."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from viscera import __version__
from viscera.server.guard import message_page
from viscera.server.hub import Hub
from viscera.server.wishes import Refusal
from viscera.session.catalogue import list_recordings

FRESH = {"Cache-Control": "no-store"}


class Answers:
    """Of one server."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._classroom = hub, hub.classroom

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/api/snapshot", self.snapshot),
            Route("/api/health", self.health),
            Route("/api/recordings", self.recordings),
            Route("/api/film", self.film),
        ]

    async def snapshot(self, request: Request) -> Response:
        data = self._hub.exact_snapshot()
        if data is None:
            return JSONResponse({"error": "There is no state yet; the session is starting."}, status_code=503)
        return Response(data, media_type="application/vnd.msgpack", headers=FRESH)

    async def health(self, request: Request) -> Response:
        hub = self._hub
        answer = {
            "status": "ok",
            "version": __version__,
            "state": hub.status.state,
            "message": hub.status.message,
            "notice": hub.status.notice,
            "session": hub.session_number,
            "session_pid": hub.session_pid,
            "tick": hub.frames.newest_tick(),
            "real_time_factor": hub.newest_factor(),
            "viewers": hub.viewers,
        }
        return JSONResponse(answer, headers=FRESH)

    async def recordings(self, request: Request) -> Response:
        """All there are; whose trials are in them, for those who may know."""
        visitor = self._classroom.entrance.who(request.cookies.get(self._classroom.entrance.cookie))

        def look() -> list[dict[str, Any]]:
            whose = self._classroom.whose(visitor)
            titles = self._hub.choices.titles
            found = [msgspec.to_builtins(one) for one in list_recordings(self._hub.choices.recordings)]
            for one in found:
                one["title"] = titles.get(one["scenario"], one["scenario"])
                one["trainees"] = whose.get(Path(one["name"]).stem, [])
                for trial in one["trials"]:
                    del trial["trainee"], trial["id"]  # what only a database has to know
            return found

        return JSONResponse(await asyncio.to_thread(look), headers=FRESH)

    async def film(self, request: Request) -> Response:
        """How far a film is; with `file`, the film itself."""
        films, name = self._hub.films, request.query_params.get("recording", "")
        try:
            path, state = films.path(name), films.state(name)
        except Refusal as refusal:
            return JSONResponse({"error": refusal.problem.message}, status_code=404)
        if "file" not in request.query_params:
            return JSONResponse(msgspec.to_builtins(state), headers=FRESH)
        if state.state != "ready":
            return JSONResponse({"error": "The film is not made yet."}, status_code=404)
        return FileResponse(path, media_type="video/mp4", filename=path.name)


async def not_built(request: Request) -> Response:
    text = "The page is not built. Run `make web` in the folder of viscera, then reload."
    return HTMLResponse(message_page("No page yet", text), status_code=503)
