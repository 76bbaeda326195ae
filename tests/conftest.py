"""What all tests share."""

from hypothesis import settings

import components as _components  # noqa: F401  before the first import of Haystack: no telemetry from tests

# Machines that run the tests are shared and slow at times; a generated test fails for what it finds, not for when.
settings.register_profile("opora", deadline=None, database=None)
settings.load_profile("opora")
