"""Every decision of traingov, pure: no clock, file, socket or thread.

Follow one sample: ``events.Sample`` → ``governor.Governor.handle`` → ``actions.SetGpuBounds``.
"""
