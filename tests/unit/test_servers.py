"""Tests whose backend is missing are skipped on a developer's machine and fail in CI."""

import pytest

from tests import servers


@pytest.mark.parametrize(
    ("environment", "outcome"),
    [
        ({"CI": ""}, pytest.skip.Exception),
        ({"CI": "true"}, pytest.fail.Exception),
        ({"CI": "true", "OPORA_TEST_WITHOUT": "qdrant"}, pytest.fail.Exception),
        ({"CI": "true", "OPORA_TEST_WITHOUT": "qdrant redis"}, pytest.skip.Exception),
    ],
)
def test_missing_backend_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], outcome: type[BaseException]
) -> None:
    monkeypatch.delenv("OPORA_TEST_WITHOUT", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(outcome, match="no server: Redis"):
        servers.absent("redis", "Redis")
