"""Data sets: questions with the known properties of their answers, and the knowledge bases for them."""
