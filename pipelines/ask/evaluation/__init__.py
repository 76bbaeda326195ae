"""A tenant's own evaluation: its questions, asked on the live index without effects, and what changed."""
