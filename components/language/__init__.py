"""Russian and English text processing. Imports no other package of the project, so that any of them can use it."""
