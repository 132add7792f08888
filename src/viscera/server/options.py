"""How a server is reached, and who may do what there: one record for all who start one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerOptions:
    host: str = "127.0.0.1"
    """Address to listen on; any but this machine's own needs a token."""
    port: int = 8420
    """0 takes any free one."""
    token: str | None = None
    """What browsers must show; None: a random one where one is needed."""
    public: str = ""
    """Where a proxy on this machine makes it public, `https://name` (docs/security.md)."""
    trainer_token: str | None = None
    """Who enters with it may take the instruments at any time, and see everybody's trials."""
    keep_running: bool = False
    """Whether the world goes on while nobody watches."""
    database: str | None = None
    """Where trials are kept, an address of `training.database`; None: nowhere."""
