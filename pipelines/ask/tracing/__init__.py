"""Traces: every turn, step by step, for people who investigate how an answer was produced.

A trace is built after its turn, off the critical path: turns are immutable, so keeping references to them is all that a
turn does for its trace. A thread (`sender`) then derives what each step changed (`changes`), describes it as spans with
the conventions of OpenInference (`spans`) and exports them by OTLP (`export`). No global tracer is set,
nothing is read from a client's headers, and without a configured address none of this runs.

Contents of a span: always figures, ids and reasons; texts (questions and numbers in them, prompts, passages, answers,
claims) only for tenants whose policy allows it (`trace_content`), and without personal data.
"""
