"""Where a trial's recording is, and the hash of the code that a trainee shows to see their own."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("trials", sql.Column("recording", sql.Text, nullable=False, server_default=""))
    op.add_column("trials", sql.Column("tick", sql.BigInteger, nullable=False, server_default="0"))
    op.add_column("trainees", sql.Column("code_hash", sql.String(64), nullable=False, server_default=""))
