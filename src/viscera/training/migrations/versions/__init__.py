"""The changes of the database's tables, one file each, in order; Alembic runs those that are missing."""
