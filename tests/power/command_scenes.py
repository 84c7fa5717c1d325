"""Commands that are recorded: backups and restores, an upgrade, and what `svc` keeps on its own side."""

import shutil
from pathlib import Path

import httpx

from tests.acceptance import newer_release
from tests.acceptance.calls import list_sources
from tests.power.diaries import Ask
from tests.power.scenes import Scene


def backup(scene: Scene) -> None:
    """Two backups of a running service; the second one replaces the first."""
    scene.prepare("one", "two")
    scene.start()
    for number in range(2):
        words = ("svc_daemon", "backup", str(scene.root / "backups"), "--keep", "1")
        _command(scene, f"back up {number}", *words, fact=lambda _: _restore_apart(scene))


def restore(scene: Scene) -> None:
    """A restore into a new directory, from which the service is then started. A cut restore is run again."""
    scene.prepare("one", "two")
    words = ("restore", str(scene.root / "backups"))
    assert scene.installation.operate("backup", words[1]).exit == 0
    scene.installation.files.root.rename(scene.root.with_name("lost"))
    scene.record_from_here()

    def resume(is_complete: bool) -> None:
        if not is_complete:
            scene.installation.operate(*words)

    scene.resume = resume
    _command(scene, "restore", "svc_daemon", *words)
    scene.start()


def upgrade(scene: Scene) -> None:
    """An upgrade to a release with one more migration. Its copy of the state from before goes on in the old release."""
    scene.prepare("one", "two")
    state = scene.installation.files.state
    words = (newer_release.__name__, "migrate")

    def resume(is_complete: bool) -> None:
        if not is_complete:
            scene.run_unrecorded(*words)
        for left in (f"{state.name}-wal", f"{state.name}-shm"):
            state.with_name(left).unlink(missing_ok=True)
        (copy,) = state.parent.glob("state.db.before-*")
        copy.rename(state)

    scene.resume = resume
    _command(scene, "upgrade", *words)


def commands(scene: Scene) -> None:
    """A key that is stored, a setting, a mapping, and a folder that is synced twice."""
    scene.prepare("one")
    docs, key = scene.root.with_name("docs"), scene.root.with_name("key")
    docs.mkdir()
    for name in ("fern", "moss", "reed"):
        (docs / f"{name}.md").write_text(f"# {name}\n\nThe {name} grows at the quay.\n")
    key.write_text(scene.installation.key)
    scene.start()
    _command(scene, "log in", "svc_cli", "auth", "login", "--key-file", str(key), fact=_stores(scene, key.read_text()))
    _command(
        scene,
        "set",
        "svc_cli",
        "config",
        "set",
        "bucket",
        "beta",
        fact=_prints(scene, "beta", "config", "get", "bucket"),
    )
    words = ("watch", "add", str(docs), "-b", "beta", "--name", "shelf")
    _command(scene, "map", "svc_cli", *words, fact=_prints(scene, "shelf", "watch", "ls", "--json"))
    sync = ("sync", str(docs), "-b", "beta", "--name", "shelf", "--prune", "delete", "--json")
    _command(scene, "sync", "svc_cli", *sync, fact=_syncs(scene, sync, docs))
    (docs / "fern.md").unlink()
    (docs / "moss.md").write_text("# moss\n\nThe moss has other words.\n")
    _command(scene, "sync again", "svc_cli", *sync, fact=_syncs(scene, sync, docs))


#: By name.
SCENES = {"backup": backup, "restore": restore, "upgrade": upgrade, "commands": commands}


def _command(scene: Scene, what: str, module: str, *words: str, fact: Ask = lambda _: None) -> None:
    """Run a command, recorded; the fact holds from its end on."""

    def run() -> None:
        ended = scene.run(module, *words)
        assert ended.exit == 0, ended.stdout + ended.stderr

    scene.diary.ask(what, run, lambda promised, _: promised.facts.update({what: fact}))


def _restore_apart(scene: Scene) -> None:
    """Assert that the newest backup is whole."""
    apart = scene.root.with_name("apart")
    ended = scene.run_unrecorded("svc_daemon", "restore", str(scene.root / "backups"), SVC_DATA_DIR=str(apart))
    assert ended.exit == 0, ended.stdout + ended.stderr
    shutil.rmtree(apart)


def _stores(scene: Scene, key: str) -> Ask:
    def check(_: httpx.Client) -> None:
        stored = [path.read_text() for path in (scene.root / "config").iterdir()]
        assert any(key in text for text in stored), "the key is lost"

    return check


def _prints(scene: Scene, wanted: str, *words: str) -> Ask:
    def check(_: httpx.Client) -> None:
        ended = scene.installation.svc(*words)
        assert wanted in ended.stdout, ended

    return check


def _read_bucket(client: httpx.Client, bucket: str) -> dict[str, bytes]:
    """Return the bytes of a bucket's files, by name."""
    found = list_sources(client, bucket)
    return {each["filename"]: client.get(f"/v1/sources/{each['id']}/content").content for each in found}


def _syncs(scene: Scene, words: tuple[str, ...], docs: Path) -> Ask:
    """Assert that the file that never changes is there, and that another sync makes the bucket equal to the folder."""

    def check(client: httpx.Client) -> None:
        files = {path.name: path.read_bytes() for path in docs.iterdir()}
        # Before another sync, which would send again what was lost.
        assert _read_bucket(client, "beta").get("reed.md") == files["reed.md"], "what was synced is lost"
        ended = scene.installation.svc(*words)
        assert ended.exit == 0, ended.stdout
        assert _read_bucket(client, "beta") == files

    return check
