"""Progress: a bar for people, a line now and then for logs, nothing for short commands."""

from __future__ import annotations

import io

from rich.console import Console

from viscera import console


def test_a_log_gets_a_line_every_ten_seconds_and_no_more() -> None:
    now = [0.0]
    file = io.StringIO()
    progress = console.LoggedProgress(Console(file=file, width=80), lambda: now[0])
    for second in range(0, 36, 3):
        now[0] = float(second)
        progress(f"replaying {second} of 36 s [liver]", second / 36)
    lines = file.getvalue().splitlines()
    assert lines == [
        " 33 %  replaying 12 of 36 s [liver]",
        " 67 %  replaying 24 of 36 s [liver]",
    ]


def test_a_short_command_says_nothing_in_a_log(capsys) -> None:
    with console.progress_bar() as progress:
        progress("compiling", 0.5)
    assert capsys.readouterr().err == ""


def test_a_long_hash_is_not_cut(capsys) -> None:
    console.print_pairs([("state hash of a long name", 2 * "0123456789abcdef" * 4)])
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "".join(shown.split()).endswith(2 * "0123456789abcdef" * 4)
