"""Traces: every turn, step by step, for people who look into how answers came about.

A trace is made after its turn, off its path: steps pass immutable turns on, so keeping references to them is all that a
turn does for its trace. A thread then tells from them what each step changed (`changes`), makes spans of that by the
conventions of OpenInference (`spans`), encodes them as OTLP (`otlp`) and sends them (`sender`). No global tracer is
set, nothing is taken from a client's headers, and where no address is set nothing of this runs.

What a span holds: figures, ids and reasons always; words (questions and numbers in them, passages, answers, claims)
only of tenants whose policy says so (`trace_content`), and without personal data.
"""
