"""The knobs: finding, bounding, verifying and giving back the GPU clock."""
