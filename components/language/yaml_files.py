"""YAML that comes with the product, read by libyaml: ten times as fast as in Python, half a second of every start."""

from pathlib import Path
from typing import Any

import yaml

# PyYAML can be built without libyaml.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:  # noqa: ANN401 - what it is, the file says
    """Parse a YAML file with the safe loader: plain values only, no objects."""
    return yaml.load(path.read_bytes(), Loader=_LOADER)  # noqa: S506 - either loader is safe
