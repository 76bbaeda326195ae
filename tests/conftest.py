"""What all tests share."""

from hypothesis import settings

import components as _components  # noqa: F401  before the first import of Haystack: no telemetry from tests

# Some hundred generated tests with 40 examples each, so that all tests together take minutes; the same ones each time,
# so that nobody is held up by what somebody else broke.
# Machines that run the tests are shared and slow at times; a generated test fails for what it finds, not for when.
settings.register_profile("opora", deadline=None, database=None, max_examples=40, derandomize=True)
settings.load_profile("opora")
