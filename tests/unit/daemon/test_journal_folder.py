"""A state directory that is removed while the service runs costs neither the originals nor the next write."""

from __future__ import annotations

import shutil
from pathlib import Path

from traingov.device.files import SystemFiles
from traingov.device.journal import RestoreJournal
from traingov.device.journal_format import Intent

KNOB = "/sys/class/devfreq/57000000.gpu/max_freq"


def test_a_removed_folder_is_made_anew_and_holds_the_originals_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    journal = RestoreJournal(str(state / "restore.json"), SystemFiles(str(tmp_path / "root")), print)
    journal.prepare([Intent(KNOB, "max", "921600000", "307200000")])
    shutil.rmtree(state)
    journal.prepare([Intent(KNOB, "max", "307200000", "460800000")])
    assert '"921600000"' in (state / "restore.json").read_text()
    shutil.rmtree(state)
    journal.clear()
    journal.prepare([Intent(KNOB, "max", "921600000", "307200000")])
    assert (state / "restore.json").exists()
    journal.clear()
    assert not (state / "restore.json").exists()
