"""Deployed pipelines: one folder per endpoint, with its YAML."""

import components as _components  # noqa: F401  before the first import of Haystack, which it keeps from phoning home
