"""Programs that make the models which the service loads."""
