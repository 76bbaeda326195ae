"""A single round of the widget benchmark, to check that its measurements exist."""

import os
import shutil

import pytest

from evaluation.benchmarks.widget import WAYS, measure
from settings import get_settings
from tests import servers


@pytest.mark.browser
def test_a_click_opens_the_chat_in_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    browser = os.environ.get("OPORA_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        servers.absent("chromium", "Chromium (apt-get install chromium, or set OPORA_TEST_CHROMIUM)")
    monkeypatch.setenv("OPORA_DATA_DIR", "")  # restored afterwards: the benchmark uses a separate folder
    measured = measure(1, browser)
    get_settings.cache_clear()
    assert set(measured) == set(WAYS)
    assert all(one.median_ms > 0 for one in measured.values())
