"""The command that installs an extra, by how the package was installed."""

import json
from typing import Any

import pytest

from svc_daemon.wire.extras import install_command


@pytest.mark.parametrize(
    ("record", "command"),
    (
        (None, "pip install 'svc-knowledge[mcp]'"),
        ({"url": "file:///srv/svc", "dir_info": {}}, "pip install '.[mcp]' (in the checkout)"),
        ({"url": "file:///srv/svc", "dir_info": {"editable": True}}, "pip install -e '.[mcp]' (in the checkout)"),
        (
            {"url": "file:///tmp/built%2B1.whl", "archive_info": {}},
            "pip install 'built+1.whl[mcp]' (where the file is)",
        ),
    ),
)
def test_extra_is_installed_as_the_package_was(
    record: dict[str, Any] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return json.dumps(record) if record and name == "direct_url.json" else None

    monkeypatch.setattr("svc_daemon.wire.extras.distribution", lambda _: Installed())
    assert install_command("mcp") == command
