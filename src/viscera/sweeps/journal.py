"""What a sweep has done so far, on disk: a line of JSON per run, written as it ends. A sweep that was broken off goes
on where it stopped.

The first line is the plan's fingerprint; a journal of another plan is refused. A line that was torn as the power failed
counts as not there.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from viscera.errors import InputError, RecordingError
from viscera.sweeps.one import Row
from viscera.sweeps.plan import Plan


class Journal:
    """Of the sweep whose results go to `out`."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self.path = out.with_name(out.stem + ".runs.jsonl")
        self.failures = out.with_name(out.stem + ".failures")
        self._mark = {"plan": plan.fingerprint(), "runs": plan.count}
        self.rows = self._read()

    def _read(self) -> dict[int, Row]:
        """Rows by the number of their run; those that failed are tried again."""
        if not self.path.exists():
            return {}
        lines = self.path.read_text().splitlines()
        try:
            mark = json.loads(lines[0])
        except (IndexError, ValueError):
            return {}
        if mark != self._mark:
            raise InputError(
                f"{self.path} is of another sweep.", "Choose another --out, or remove the file to begin again."
            )
        rows: dict[int, Row] = {}
        for line in lines[1:]:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            rows[told["run"]] = Row(**told)
        return {number: row for number, row in rows.items() if not row.failed}

    def open(self) -> None:
        """Before the first `add`: the file has the mark and the whole lines that were read."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(self._mark), *(_line(row) for row in self.rows.values())]
            fresh = self.path.with_suffix(".new")
            fresh.write_text("".join(line + "\n" for line in lines))
            os.replace(fresh, self.path)
            self._file = self.path.open("a")
        except OSError as error:
            raise RecordingError(f"Cannot write {self.path}: {error.strerror}.", "Choose another --out.") from error

    def add(self, row: Row) -> None:
        """Is on the disk when this returns."""
        self.rows[row.run] = row
        if row.recorded:
            self.failures.mkdir(exist_ok=True)
            (self.failures / row.recording).write_bytes(row.recorded)
        self._file.write(_line(row) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _line(row: Row) -> str:
    told = asdict(row)
    del told["recorded"]
    return json.dumps(told)
