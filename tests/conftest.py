"""Makes ``command_line`` importable everywhere below."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
