"""multilingual-e5-small (MIT) as an ONNX model of Russian and English, small and quick on CPUs.

`python -m evaluation.training.e5_small MODELS` fetches the weights, checks and converts them, and writes a folder of
models that fastembed loads. `opora models add e5-small` runs it.
"""
