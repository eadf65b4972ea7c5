"""Helpers for PyTorch loops, the Hugging Face ``Trainer`` and Lightning. Each module imports its own library only.

Import the one that you use: ``torch_loop.GovernedLoop``, ``huggingface.TraingovCallback``,
``lightning.TraingovCallback``. The client itself needs none of them.
"""
