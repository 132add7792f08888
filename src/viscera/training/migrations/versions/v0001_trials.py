"""Trainees, their trials, and the numbers of each score."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "trainees",
        sql.Column("id", sql.Integer, primary_key=True),
        sql.Column("name", sql.String(120), nullable=False, unique=True),
        sql.Column("created", sql.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "trials",
        sql.Column("id", sql.String(36), primary_key=True),
        sql.Column("trainee", sql.Integer, sql.ForeignKey("trainees.id", ondelete="CASCADE"), nullable=False),
        sql.Column("scenario", sql.String(120), nullable=False),
        sql.Column("level", sql.String(120), nullable=False),
        sql.Column("seed", sql.BigInteger, nullable=False),
        sql.Column("outcome", sql.String(20), nullable=False),
        sql.Column("passed", sql.Boolean, nullable=False),
        sql.Column("time", sql.Float, nullable=False),
        sql.Column("advice", sql.Text, nullable=False),
        sql.Column("ended", sql.DateTime(timezone=True), nullable=False),
    )
    op.create_index("trials_of", "trials", ["trainee", "scenario", "ended"])
    op.create_table(
        "trial_values",
        sql.Column("trial", sql.String(36), sql.ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True),
        sql.Column("name", sql.String(120), primary_key=True),
        sql.Column("value", sql.Float, nullable=False),
    )
