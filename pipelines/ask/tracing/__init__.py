"""Traces: every turn, step by step, for people who look into how answers came about.

A trace is made after its turn, off its path: steps pass immutable turns on, so keeping references to them is all that a
turn does for its trace. A thread (`sender`) then derives what each step changed (`changes`), describes that as spans by
the conventions of OpenInference (`spans`) and exports them by OpenTelemetry's SDK (`export`). No global tracer is set,
nothing is taken from a client's headers, and where no address is set nothing of this runs.

What a span holds: figures, ids and reasons always; words (questions and numbers in them, passages, answers, claims)
only of tenants whose policy says so (`trace_content`), and without personal data.
"""
