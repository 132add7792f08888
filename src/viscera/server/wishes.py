"""What browsers ask for, checked: numbers and names within their limits, or a refusal that says what is allowed."""

from __future__ import annotations

import math
from typing import Literal

from viscera.detail import Detail, parse_detail
from viscera.errors import InputError
from viscera.server import messages as m
from viscera.session import commands as c

LARGEST_SEED = 2**31 - 1
LONGEST_NAME = 256
LONGEST = 1e6
"""Of a recording, eleven days [s]."""


class Refusal(Exception):
    """A browser asked for something that cannot be done now."""

    def __init__(self, code: Literal["refused", "input"], message: str, hint: str) -> None:
        super().__init__(message)
        self.problem = m.Problem(code=code, message=message, hint=hint)


def control(client: int, message: m.Control, fastest: float = 1.0) -> c.Command:
    value = message.value
    if message.action == "speed":
        if value is None or not m.MIN_SPEED <= value <= fastest:
            raise Refusal("input", f"speed = {value} is not allowed.", f"Allowed is {m.MIN_SPEED} to {fastest:g}.")
        return c.SetSpeed(value)
    if message.action == "reset":
        return c.ResetWorld(client, None if value is None else seed_of(value))
    return {"pause": c.Pause, "resume": c.Resume, "step": c.StepFrame}[message.action]()


def drill(client: int, message: m.Drill, trainee: str = "") -> c.Command:
    """`trainee` is the key of whoever asks for it."""
    if message.action == "start":
        seed = None if message.seed is None else seed_of(message.seed)
        return c.BeginDrill(client, message.level, seed, trainee)
    if message.action == "give_up":
        return c.FinishDrill(client, "given_up", 0.0)
    return c.FinishDrill(client, "found", message.certainty)


def tick_of(seconds: float) -> int:
    if not (math.isfinite(seconds) and 0.0 <= seconds <= LONGEST):
        raise Refusal("input", f"second {seconds} is not there.", "Use a time within the recording.")
    return round(1000.0 * seconds)


def seed_of(value: float) -> int:
    if not math.isfinite(value) or value != int(value) or not 0 <= value <= LARGEST_SEED:
        raise Refusal("input", f"seed = {value} is not allowed.", f"Use a whole number from 0 to {LARGEST_SEED}.")
    return int(value)


def detail_of(text: str) -> Detail:
    try:
        return parse_detail(text[:LONGEST_NAME])
    except InputError as error:
        raise Refusal("input", error.message, error.hint) from error


def name_of(text: str, what: str) -> str:
    if len(text) > LONGEST_NAME:
        raise Refusal("input", f"the name of a {what} is too long.", "Use one the scene lists.")
    return text


def in_words(detail: Detail) -> str:
    return detail if isinstance(detail, str) else f"{detail:g}"


def kept_where(recording: str) -> str:
    return f"Its recording is {recording}." if recording else "It was not recorded."
