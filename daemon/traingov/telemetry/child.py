"""A child process that prints: started in its own session, read without blocking, and killed as a group.

A child must not outlive the daemon, even one killed with SIGKILL. Two things see to it: the pipe breaks, so the
child's next line ends it by SIGPIPE (Popen gives the child the default action back), and where `setpriv`
(util-linux) exists the kernel kills the child when its parent dies (PR_SET_PDEATHSIG). `setpriv` sets that and
then becomes the command. A preexec_fn would do the same in this process, but is not safe beside threads and makes
Python fork where it otherwise uses vfork.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

_PDEATHSIG: Final = ("--pdeathsig", "KILL", "--")


class Child:
    """One running command. ``stdout`` and ``stderr`` are non-blocking descriptors.

    Raises OSError (FileNotFoundError, PermissionError, …) when the command cannot be started. Starting takes
    about a millisecond (vfork and exec; it is not worth a thread, and PDEATHSIG is bound to the starting thread,
    which must therefore be one that stays).
    """

    def __init__(self, command: Sequence[str], die_with_parent: bool = True) -> None:
        setpriv = shutil.which("setpriv") if die_with_parent else None
        found = shutil.which(command[0])
        if found is None:
            # Let the system say what is wrong, about the command and not about setpriv.
            setpriv = None
        self.guarded = setpriv is not None
        arguments = [setpriv, *_PDEATHSIG, *command] if setpriv else list(command)
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._files = (self._process.stdout, self._process.stderr)
        self.stdout, self.stderr = (file.fileno() for file in self._files)
        os.set_blocking(self.stdout, False)
        os.set_blocking(self.stderr, False)

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its process group."""
        return self._process.pid

    def ended(self) -> str | None:
        """How it ended, in words; None while it runs. Does not reap it, so that its id stays its own."""
        if self._process.returncode is not None:
            return "has ended"
        try:
            state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return "has ended"
        if state is None:
            return None
        if state.si_code == os.CLD_EXITED:
            return f"ended with exit status {state.si_status}"
        try:
            return f"was killed by {signal.Signals(state.si_status).name}"
        except ValueError:
            return f"was killed by signal {state.si_status}"

    def kill(self) -> None:
        """Kill the whole group and let go of the pipes. Does not wait: call ``reap`` later, until it is True.

        The group may outlive the child (a wrapper script's own children), so it is killed even when the child
        has ended. It was not reaped before, so nobody else can have got its id.
        """
        for file in self._files:
            file.close()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> bool:
        """Whether the killed child is gone. Never waits: a process in an uninterruptible read takes its time."""
        return self._process.poll() is not None
