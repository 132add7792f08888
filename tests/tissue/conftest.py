"""Lattices in tests are small: on cpu one core takes them."""

from __future__ import annotations

import pytest

from viscera.device import Device, open_device


@pytest.fixture(scope="session")
def cpu() -> Device:
    return open_device("cpu", cores=1)


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda:0", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device there is: results must agree on all of them."""
    return open_device("cpu", cores=1) if request.param == "cpu" else open_device(request.param)
