"""The console script `traingov`.

`restore` is taken out before anything beyond the standard library is imported: a broken NumPy or a half-removed
package must not keep the GPU at our clocks (DESIGN 5.1). Everything else goes to the full command line.
"""

from __future__ import annotations

import importlib
import sys

from . import restore


def main() -> None:
    """Run the command named on the command line."""
    if sys.argv[1:2] == ["restore"]:
        sys.exit(restore.main(sys.argv[2:]))
    # By name, so that this module's own imports stay the standard library's (an import contract holds that).
    command_line = importlib.import_module("traingov.cli.main")
    sys.exit(command_line.main())
