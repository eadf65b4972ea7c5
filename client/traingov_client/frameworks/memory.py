"""Which errors say that a batch does not fit into memory, and what is done on the device about it."""

import gc

_TEXTS = (
    "out of memory",  # CUDA, and PyTorch before its own error class
    "can't allocate memory",  # PyTorch's CPU allocator
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "NvMapMemAlloc",  # Jetson's own allocator
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch may help: MemoryError, PyTorch's OutOfMemoryError, or a RuntimeError that says so."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _TEXTS)


def free_memory() -> None:
    """Give back what a failed step held: reference cycles, then PyTorch's cache."""
    gc.collect()
    import torch  # noqa: PLC0415  needed here only

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def wait_for_device() -> None:
    """torch.cuda.synchronize where CUDA is in use; elsewhere a step has ended when its calls have."""
    import torch  # noqa: PLC0415  needed here only

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
