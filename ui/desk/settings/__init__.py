"""Settings of a tenant in the desk: a page for each concern."""
