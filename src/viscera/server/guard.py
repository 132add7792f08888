"""Who may talk to the server: pages from here, people with the token, and nobody else.

A server on loopback answers requests that were made to a loopback name (a foreign site cannot point its own name here)
and that come from a page of this host. A server on any other address, or one that a proxy makes public, wants its token
as well, in the address (`/?token=…`, kept in a cookie from then on), or as `Authorization: Bearer …`.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from viscera.errors import InputError

SHORTEST_TOKEN = 16

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; connect-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
        "font-src 'self' data:; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
}

FORMS = "/training/"
"""Pages with forms. Where no referrer is allowed, a browser sends a form with the origin `null`: a foreign page."""
WEBCAM_PAGE = "/webcam.html"
WEBCAM_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; media-src 'self' blob:; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Of the frame in which the landmark model runs: it alone may make functions from text, and our page may hold it."""


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def choose_token(host: str, token: str | None, public: str = "") -> str:
    """The token of a server on `host`: the given one, a new one where one is needed, or none on loopback."""
    if token is None:
        return "" if is_loopback(host) and not public else secrets.token_urlsafe(24)
    if len(token) < SHORTEST_TOKEN:
        raise InputError(
            f"the token has {len(token)} characters; at least {SHORTEST_TOKEN} are needed.",
            "Leave it out, and a good one is made and printed.",
        )
    return token


def check_public(address: str) -> str:
    """The address under which a proxy makes the server public, `https://name` or `https://name:port`."""
    hint = "Give it like this: https://theatre.example."
    try:
        parts = urlsplit(address)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise InputError(f"public = {address!r} is no address.", hint) from None
    if not named or parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
        raise InputError(f"public = {address!r} is no address of a proxy.", hint)
    return f"{parts.scheme}://{parts.netloc.lower()}"


@dataclass(frozen=True)
class Refusal:
    status: int
    title: str
    text: str


@dataclass(frozen=True)
class Policy:
    host: str
    """Address that the server is bound to."""
    port: int
    token: str = ""
    """Empty when none is needed."""
    public: str = ""
    """Where a proxy makes it public, `https://name`; empty when none does."""

    @property
    def cookie(self) -> str:
        # Browsers share cookies between the ports of a host.
        return f"viscera-token-{self.port}"

    def refuse(self, headers: Headers, query: str) -> Refusal | None:
        """Why this request is not answered, or None."""
        asked = _host_name(headers.get("host", ""))
        if is_loopback(self.host) and not (is_loopback(asked) or asked in (self.host, self._public_name)):
            return Refusal(403, "Wrong address", f"This server answers to localhost and 127.0.0.1, not to {asked!r}.")
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin, headers.get("host", "")):
            return Refusal(403, "Foreign page", f"Pages from {origin!r} may not use this server. Open its own page.")
        if self.token and not self._knows_token(headers, query):
            text = "This server needs its token. Open the address that was printed where it was started."
            return Refusal(401, "Token needed", text)
        return None

    @property
    def _public_name(self) -> str:
        return urlsplit(self.public).hostname or self.host

    def token_in(self, query: str) -> bool:
        """Whether the address itself carries the right token."""
        given = parse_qs(query).get("token", [""])[0]
        return bool(self.token) and _same(given, self.token)

    def _is_ours(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if self.public and origin.lower() == self.public:
            return True
        return parts.scheme in ("http", "https") and (parts.netloc == host or is_loopback(parts.hostname or ""))

    def _knows_token(self, headers: Headers, query: str) -> bool:
        # Other programs on this host set cookies too, and not all of them by the book.
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return self.token_in(query) or _same(bearer, self.token) or (cookie is not None and _same(cookie, self.token))


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class Guard:
    """ASGI middleware that applies a `Policy` to every request and adds the headers a browser should obey."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self.app = app
        self.policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        query = scope["query_string"].decode("latin-1")
        refusal = self.policy.refuse(Headers(scope=scope), query)
        if scope["type"] == "websocket":
            if refusal is not None:
                await _refuse_socket(refusal, scope, receive, send)
                return
            await self.app(scope, receive, send)
            return
        answer: ASGIApp = self.app
        if refusal is not None:
            answer = _page(refusal.status, refusal.title, refusal.text)
        elif scope["path"] == "/" and self.policy.token_in(query):
            answer = self._remember_token(query)
        await answer(scope, receive, _with_headers(send, scope["path"]))

    def _remember_token(self, query: str) -> Response:
        """Moves the token from the address, where it would be seen and shared, into a cookie."""
        rest = {name: values[0] for name, values in parse_qs(query).items() if name != "token"}
        answer = RedirectResponse("/" + (f"?{urlencode(rest)}" if rest else ""), status_code=303)
        answer.set_cookie(
            self.policy.cookie,
            self.policy.token,
            httponly=True,
            samesite="strict",
            path="/",
            secure=self.policy.public.startswith("https:"),
        )
        return answer


async def _refuse_socket(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    if "websocket.http.response" in scope.get("extensions", {}):
        start = {"type": "websocket.http.response.start", "status": refusal.status}
        await send({**start, "headers": [(b"content-type", b"text/plain; charset=utf-8")]})
        await send({"type": "websocket.http.response.body", "body": refusal.text.encode()})
    else:
        await send({"type": "websocket.close", "code": 1008})


def _with_headers(send: Send, path: str) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            if path.startswith(FORMS):
                headers["Referrer-Policy"] = "same-origin"
            if path == WEBCAM_PAGE:
                headers["Content-Security-Policy"] = WEBCAM_POLICY
        await send(message)

    return send_with_headers


def _page(status: int, title: str, text: str) -> HTMLResponse:
    return HTMLResponse(message_page(title, text), status_code=status)


def message_page(title: str, text: str) -> str:
    """A whole small HTML page that says one thing."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>viscera: {escape(title)}</title>"
        '<body style="font: 18px/1.5 system-ui, sans-serif; max-width: 40em; margin: 15vh auto; padding: 0 1em">'
        f"<h1>{escape(title)}</h1><p>{escape(text)}</p></body></html>"
    )
