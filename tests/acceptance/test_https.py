"""A daemon that serves HTTPS is trusted by commands with its data directory, and by others through its authority."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from tests.acceptance.installations import Installation
from tests.conftest import UNLIMITED, MakeInstallation

#: A name that isn't the daemon's address, 127.0.0.1, so that the certificate doesn't match it.
NAME = "svc.example"


@pytest.fixture
def secure(authority: trustme.CA, make_installation: MakeInstallation, tmp_path: Path) -> Callable[..., Installation]:
    """A function that makes an installation with a certificate for these names, valid for `days`."""

    def make(*names: str, days: int = 90, **variables: str) -> Installation:
        leaf = authority.issue_cert(*names, not_after=datetime.now(UTC) + timedelta(days=days))
        files = {"SVC_TLS_CERT": tmp_path / "served.pem", "SVC_TLS_KEY": tmp_path / "served.key"}
        files["SVC_TLS_CERT"].write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        files["SVC_TLS_KEY"].write_bytes(leaf.private_key_pem.bytes())
        authority.cert_pem.write_to_path(tmp_path / "authority.pem")
        return make_installation(**UNLIMITED, **{name: str(path) for name, path in files.items()}, **variables)

    return make


def test_commands_with_the_data_directory_trust_a_certificate_of_another_name(
    secure: Callable[..., Installation], tmp_path: Path
) -> None:
    installation = secure(NAME).start()
    (tmp_path / "quay.md").write_text("# Quay\n\nThe umber quay was built of grey stone.\n")
    (tmp_path / "large.txt").write_text("grey stone " * 200_000)
    assert installation.base_url.startswith("https://127.0.0.1:")
    sent = installation.svc("upload", str(tmp_path / "quay.md"), str(tmp_path / "large.txt"), "-b", "inbox", "--json")
    assert sent.exit == 0, sent.stderr
    assert "quay" in installation.svc("search", "umber quay", "-b", "inbox").stdout
    made = installation.operate("team", "create", "second", "--json")
    assert (made.exit, made.json["team"]["name"]) == (0, "second")
    status = installation.svc("daemon", "status", "--json").json
    assert (status["base_url"], status["certificate"]["names"]) == (installation.base_url, [NAME])
    doctor = {check["check"]: check for check in installation.svc("doctor", "--json").json["checks"]}
    assert (doctor["certificate"]["state"], NAME in doctor["certificate"]["text"]) == ("ok", True)
    with installation.client() as client:
        fields = {"filename": "a.txt", "size_bytes": 1}
        session = client.post("/v1/buckets/inbox/uploads", json=fields).json()
        assert urlsplit(session["upload_url"]).scheme == "https"
        assert client.put(session["upload_url"], content=b"a").status_code == 200
    installation.assert_intact()


def test_svc_with_a_base_url_trusts_the_authority_in_ssl_cert_file(
    secure: Callable[..., Installation], tmp_path: Path
) -> None:
    installation = secure(NAME, "localhost").start()
    url = f"https://localhost:{urlsplit(installation.base_url).port}"
    refused = installation.svc("bucket", "ls", "--base-url", url, "--json")
    assert refused.failure == (12, "svc_certificate_refused")
    assert "SSL_CERT_FILE" in refused.json["error"]["hint"]
    installation.environ |= {"SSL_CERT_FILE": str(tmp_path / "authority.pem"), "SVC_API_KEY": installation.key}
    listed = installation.svc("bucket", "ls", "--base-url", url, "--json")
    assert listed.exit == 0, listed.stderr
    by_address = installation.svc("bucket", "ls", "--base-url", installation.base_url, "--json")
    assert by_address.failure == (12, "svc_certificate_refused")
    assert "names in the certificate" in by_address.json["error"]["hint"]
    plain = installation.svc("bucket", "ls", "--base-url", url.replace("https:", "http:"), "--json")
    assert (plain.failure, "https://" in plain.json["error"]["hint"]) == ((12, "svc_port_taken"), True)
    installation.environ["SSL_CERT_DIR"] = str(tmp_path / "nowhere")
    unusable = installation.svc("bucket", "ls", "--base-url", url, "--json")
    assert (unusable.exit, "SSL_CERT_DIR" in unusable.json["error"]["message"]) == (2, True)
    del installation.environ["SSL_CERT_DIR"]
    installation.environ["SSL_CERT_FILE"] = str(tmp_path / "none.pem")
    unusable = installation.svc("bucket", "ls", "--base-url", url, "--json")
    assert (unusable.exit, "none.pem" in unusable.json["error"]["message"]) == (2, True)


def test_doctor_warns_before_the_certificate_expires_and_an_expired_one_is_refused(
    secure: Callable[..., Installation],
) -> None:
    installation = secure(NAME, days=3).start()
    checks = {check["check"]: check for check in installation.svc("doctor", "--json").json["checks"]}
    assert (checks["certificate"]["state"], "renew" in checks["certificate"]["hint"]) == ("warning", True)
    # A test can't wait until a certificate expires, so it checks that an expired one is refused at the start.
    assert installation.stop() == 0
    secure(NAME, days=-1)
    refused = installation.svc("daemon", "start", "--json")
    assert (refused.exit, "certificate has expired" in refused.json["error"]["message"]) == (12, True)
