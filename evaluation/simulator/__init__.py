"""A model server that runs anywhere: Ollama's protocol and OpenAI's, answered by honest rules instead of a model.

It reads the passages that a prompt fences, quotes the sentences of them that fit the question, grades passages and
checks claims by their words and numbers, and fails in every way that a real server fails in, when it is told to. What
it knows is what the prompt says; so a turn through it makes sense, and what is wrong with a prompt shows.
"""
