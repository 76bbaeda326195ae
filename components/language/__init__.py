"""Russian and English text. Imports nothing of ours, so that every room can use it."""
