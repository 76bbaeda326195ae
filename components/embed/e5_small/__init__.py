"""multilingual-e5-small (MIT) as an ONNX model of Russian and English, small and quick on CPUs.

`install` fetches the weights, checks and converts them. What comes out is a folder that fastembed loads like any model.
"""
