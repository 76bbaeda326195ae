"""The route of a turn, and the reply to the visitor."""
