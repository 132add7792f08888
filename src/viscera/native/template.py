"""Text with slots: `fill("$type x = $start;", type="float", start=0.5)` is `float x = 0.5f;`.

Every slot must be given and every given part must have a slot, so that a renamed slot cannot leave a hole in the code
or drop a part of it. A part has no slots of its own: fill it first.
"""

from __future__ import annotations

import math
import re

_SLOT = re.compile(r"\$(\w*)")


class TemplateError(ValueError):
    """A slot without a part, a part without a slot, or a part that is not finished. A mistake in our own code."""


def fill(template: str, **parts: str | float) -> str:
    """The template with each `$name` replaced by the part of that name. Numbers become C literals."""
    wanted = set(_SLOT.findall(template))
    if missing := sorted(wanted - parts.keys()):
        raise TemplateError(f"no part was given for the slots {missing}; given are {sorted(parts)}")
    if unused := sorted(parts.keys() - wanted):
        raise TemplateError(f"the template has no slots {unused}; it has {sorted(wanted)}")
    texts = {name: _text(name, part) for name, part in parts.items()}
    return _SLOT.sub(lambda found: texts[found[1]], template)


def check_filled(text: str) -> str:
    """The same text, if no slot is left in it."""
    if left := sorted(set(_SLOT.findall(text))):
        raise TemplateError(f"these slots were never filled: {left}")
    return text


def _text(name: str, part: str | float) -> str:
    if isinstance(part, str):
        if left := sorted(set(_SLOT.findall(part))):
            raise TemplateError(f"the part {name!r} has slots of its own: {left}; fill it first")
        return part
    if isinstance(part, bool) or not isinstance(part, int | float):
        raise TemplateError(f"the part {name!r} is {part!r}; give text or a number")
    if isinstance(part, int):
        return str(part)
    if not math.isfinite(part):
        raise TemplateError(f"the part {name!r} is {part}; C has no literal for it")
    return f"{part!r}f"
