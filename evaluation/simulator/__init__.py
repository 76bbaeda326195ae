"""A model server that runs anywhere: Ollama's protocol and OpenAI's, answered by honest rules instead of a model.

It reads the fenced passages of a prompt, quotes the sentences that fit the question, grades passages and checks claims
by their words and numbers, and on request fails in every way that a real server fails. Its only knowledge is the
prompt; so a turn through it makes sense, and defects of a prompt show.
"""
