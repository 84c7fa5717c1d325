"""A recording with a change that the replay doesn't model is refused, since its disks would be others."""

import sys
from pathlib import Path

import pytest

from tests.acceptance.test_system_calls import can_trace
from tests.power.scenes import Scene

pytestmark = [
    pytest.mark.skipif(not can_trace(), reason="no strace is installed, or it may not trace here"),
    pytest.mark.sqlite,
    pytest.mark.folders,
    pytest.mark.one_daemon,
]
#: `top` is the recorded folder, with the file `old` and the folder `scratch`.
START = """
import ctypes, mmap, os, sys
from pathlib import Path
top = Path(sys.argv[1])
"""
C = "ctypes.CDLL(None)"


@pytest.mark.parametrize(
    "change",
    [
        "os.chdir(top); os.rename('old', 'new')",
        "os.chdir(top); os.unlink('old')",
        "(top / 'scratch' / 'made').write_bytes(b'1'); (top / 'scratch' / 'made').rename(top / 'made')",
        f"{C}.renameat2(-100, bytes(top / 'old'), -100, bytes(top / 'other'), 2)",
        "mmap.mmap(os.open(top / 'old', os.O_RDWR), 3)[:1] = b'1'",
        "os.copy_file_range(os.open(top / 'old', 0), os.open(top / 'other', os.O_WRONLY), 3)",
        "os.sendfile(os.open(top / 'other', os.O_WRONLY), os.open(top / 'old', 0), 0, 3)",
        "os.posix_fallocate(os.open(top / 'old', os.O_WRONLY), 0, 9)",
        "os.pwritev(os.open(top / 'old', os.O_WRONLY), [b'1'], 0, os.RWF_DSYNC)",
        "os.write(os.dup(os.open(top / 'old', os.O_WRONLY)), b'1')",
        "fd = os.open(top, os.O_TMPFILE | os.O_WRONLY); os.link(f'/proc/self/fd/{fd}', top / 'new', src_dir_fd=0)",
        "os.symlink('old', top / 'new')",
    ],
)
def test_change_that_the_replay_does_not_model_is_refused(change: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "one")
    (scene.root / "scratch").mkdir()
    for name in ("old", "other"):
        (scene.root / name).write_bytes(b"one")
    scene.record_from_here()
    ended = scene.installation.run(*scene.trace(), sys.executable, "-c", START + change, str(scene.root))
    assert ended.exit == 0, ended.stderr
    with pytest.raises(ValueError, match=r"model|map|file|descriptor|subpath"):
        scene.end()
