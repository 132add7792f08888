"""Blocks of the pages about materials run as printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, heading: str) -> list[str]:
    """Python blocks of one section."""
    text = (DOCS / page).read_text()
    section = re.split(r"^#+ ", text.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


@pytest.mark.parametrize(
    ("page", "heading"), [("tissue.md", "Several materials"), ("skin.md", "Several materials"), ("water.md", "Search")]
)
def test_a_block_runs_as_printed(page: str, heading: str, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks(page, heading)
    names: dict[str, Any] = {}
    exec(block, names)
    printed = [float(number) for number in capsys.readouterr().out.split()]
    assert printed
    assert np.isfinite(printed).all()
    if page == "tissue.md":
        assert printed[1] < -1e-3  # it sags
    if page == "skin.md":
        assert printed[0] > 100.0
    if page == "water.md":
        assert printed[0] == pytest.approx(1000.0, rel=0.4)  # half of the particles are at a surface
