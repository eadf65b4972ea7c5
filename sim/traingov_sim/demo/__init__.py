"""The demonstration: real gradient steps on virtual boards, governed by the real service. `traingov-sim demo`."""
