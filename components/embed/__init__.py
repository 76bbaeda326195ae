"""Texts as dense vectors, by models: in this process or on a server."""
