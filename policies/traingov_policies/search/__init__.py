"""The live search for the clock of least energy: a prior from the board's other jobs, few probes, a bounded loss."""
