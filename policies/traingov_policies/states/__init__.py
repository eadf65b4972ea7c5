"""The governor's states, each a small type that names its exits.

``Idle`` → (a job registers) → one of ``Observing``, ``Holding``, ``Reference``, ``Profiling``.
``Profiling`` → plan exhausted → ``Joint``; → the job or the knob does not follow → ``Observing``.
``Reference`` → utilization measured → ``Searching`` (search switched off → ``Holding``).
``Searching`` → the tree's own clock cannot be measured → ``Holding``.
``Sweep`` (an energy sweep was asked for) → every point measured, stopped, or a cap set → begins anew.
``Joint`` → the cap changed and the table lacks points for it → ``Profiling``.
Any of them → a second job → ``Sharing`` → one job left → begins anew. The last job ends → ``Idle``.
"""
