"""A key for each trainee, by which recordings know them; longer hashes of codes; words for measures."""

from __future__ import annotations

import uuid

import sqlalchemy as sql
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    # Not by batches: those make a table of SQLite anew, and dropping the old one would delete all trials with it.
    op.add_column("trainees", sql.Column("key", sql.String(32), nullable=False, server_default=""))
    _give_keys()
    op.create_index("trainees_key", "trainees", ["key"], unique=True)
    if op.get_bind().dialect.name != "sqlite":  # which keeps texts of any length
        op.alter_column("trainees", "code_hash", type_=sql.String(200), existing_type=sql.String(64))
    op.create_table(
        "measures",
        sql.Column("scenario", sql.String(120), primary_key=True),
        sql.Column("level", sql.String(120), primary_key=True),
        sql.Column("name", sql.String(120), primary_key=True),
        sql.Column("label", sql.String(200), nullable=False),
        sql.Column("unit", sql.String(40), nullable=False),
        sql.Column("digits", sql.Integer, nullable=False),
        sql.Column("better", sql.String(8), nullable=False),
        sql.Column("limit", sql.Float, nullable=True),
    )


def _give_keys() -> None:
    connection = op.get_bind()
    trainees = sql.table("trainees", sql.column("id", sql.Integer), sql.column("key", sql.String))
    for number in list(connection.scalars(sql.select(trainees.c.id))):
        connection.execute(sql.update(trainees).where(trainees.c.id == number).values(key=uuid.uuid4().hex))
