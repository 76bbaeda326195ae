"""What is deployed: one folder per endpoint, with the YAML that composes it."""

import components as _components  # noqa: F401  before the first import of Haystack, which it keeps from phoning home
