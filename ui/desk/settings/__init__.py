"""Settings of a tenant in the desk, one page per topic."""
