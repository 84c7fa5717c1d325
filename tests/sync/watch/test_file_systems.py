"""Finding the file system of a folder in the mount table, and counting folders."""

from pathlib import Path

from svc_cli.sync.watch.observers import count_folders, kind_of

MOUNTS = [
    "/dev/sda1 / ext4 rw 0 0",
    "server:/users /users nfs4 rw 0 0",
    "/dev/sdb1 /users/ann/local xfs rw 0 0",
    "//server/share /mnt/two\\040words cifs rw 0 0",
    "tmpfs /over tmpfs rw 0 0",
    "me@host: /over fuse.sshfs rw 0 0",
    "broken",
]


def test_file_system_of_a_path_is_that_of_its_deepest_and_latest_mount() -> None:
    kinds = {"/etc": "ext4", "/": "ext4", "/users/ann": "nfs4", "/usersly": "ext4", "/users/ann/local/docs": "xfs"}
    kinds |= {"/mnt/two words/docs": "cifs", "/over": "fuse.sshfs"}
    assert {path: kind_of(path, MOUNTS) for path in kinds} == kinds


def test_count_of_folders_includes_the_root_and_no_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c.md").touch()
    assert count_folders(tmp_path) == 3
