"""Makes ``command_line`` importable everywhere below."""

import signal
import sys
from pathlib import Path

# A run that was started in the background of a script ignores SIGINT, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))
