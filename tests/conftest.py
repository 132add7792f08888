"""What all tests share: devices, and when a test can run here at all."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Generator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cpu():
    """The cpu device, with every core this machine has."""
    from viscera.device import open_device

    return open_device("cpu")


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda:0", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest):
    """Each device there is: results must agree on all of them."""
    from viscera.device import open_device

    return open_device(request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run. `make test` requires a browser, so that its tests cannot vanish silently."""
    from viscera.device import cuda_state
    from viscera.doctor import BROWSER_VARIABLE, find_browser

    if any(item.get_closest_marker("cuda") for item in items) and not cuda_state().usable:
        _skip(items, "cuda", cuda_state().reason)
    browser = find_browser()
    if browser is not None:
        os.environ[BROWSER_VARIABLE] = browser  # one browser for all tests, those in Node too
    elif not os.environ.get("VISCERA_REQUIRE_BROWSER"):
        _skip(items, "browser", "no Chromium or Chrome was found; see `viscera doctor`")
    # The longest file, so that the last worker does not begin with it.
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)


def _skip(items: list[pytest.Item], marker: str, reason: str) -> None:
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.skip(reason=reason))


_HAS_XATLAS = importlib.util.find_spec("xatlas") is not None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """On a bare GPU machine there is no xatlas: tests of organs whose atlas is not shipped are skipped there."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and not _HAS_XATLAS and call.excinfo is not None and "xatlas" in str(call.excinfo.value):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "Skipped: xatlas is not installed here")
