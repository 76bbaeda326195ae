"""Reader of public data sets: JSON Lines without conversion of fields."""

import json
from collections.abc import Mapping
from pathlib import Path

from settings import ROOT

DATA = ROOT.parent / "shared" / "data"
"""Default folder of the public sets; see `--data`."""

Row = Mapping[str, object]


class MissingData(Exception):
    """A missing file of a data set; `path` is its expected place."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


def present(path: Path) -> Path:
    if not path.is_file():
        raise MissingData(path)
    return path


def rows(path: Path) -> list[Row]:
    with present(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def string(row: Row, key: str) -> str:
    return str(row.get(key) or "")


def sequence(row: Row, key: str) -> list[object]:
    value = row.get(key)
    return value if isinstance(value, list) else []


def objects(row: Row, key: str) -> list[Row]:
    return [item for item in sequence(row, key) if isinstance(item, dict)]
