"""The daemon's certificate is loaded with its names and expiry, and an invalid one is refused with a sentence."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from svc_daemon.server.certificates import load_certificate
from svc_daemon.settings.limits import SettingError
from svc_daemon.settings.servers import TlsFiles

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def written(folder: Path, leaf: trustme.LeafCert, name: str = "served") -> TlsFiles:
    """Write a certificate and its key to files and return these."""
    files = TlsFiles(certificate=folder / f"{name}.pem", key=folder / f"{name}.key")
    files.certificate.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    files.key.write_bytes(leaf.private_key_pem.bytes())
    return files


def refusal(certificate: Path, key: Path) -> str:
    with pytest.raises(SettingError) as refused:
        load_certificate(TlsFiles(certificate=certificate, key=key))
    return str(refused.value)


def test_valid_certificate_is_loaded_with_its_names_and_expiry(authority: trustme.CA, tmp_path: Path) -> None:
    end = (NOW + 30 * DAY).replace(microsecond=0)
    leaf = authority.issue_cert("svc.example", "*.svc.example", "127.0.0.1", not_after=end)
    loaded = load_certificate(written(tmp_path, leaf))
    assert loaded.names == ("svc.example", "*.svc.example", "127.0.0.1")
    assert loaded.expires_at == end.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    chained = authority.create_child_ca().issue_cert("svc.example")
    assert (len(chained.cert_chain_pems), load_certificate(written(tmp_path, chained)).names) == (2, ("svc.example",))
    assert loaded.pem.strip() == leaf.cert_chain_pems[0].bytes().decode().strip()


def test_invalid_certificate_or_key_is_refused_with_its_reason(authority: trustme.CA, tmp_path: Path) -> None:
    valid = written(tmp_path, authority.issue_cert("svc.example"))
    past = written(tmp_path, authority.issue_cert("a.example", not_before=NOW - 9 * DAY, not_after=NOW - DAY), "past")
    soon = written(tmp_path, authority.issue_cert("a.example", not_before=NOW + DAY, not_after=NOW + 9 * DAY), "soon")
    other = written(tmp_path, authority.issue_cert("svc.example"), "other")
    garbage, encrypted, binary = tmp_path / "garbage.pem", tmp_path / "encrypted.key", tmp_path / "binary.key"
    garbage.write_text("nothing")
    binary.write_bytes(b"\xff\x00")
    key = load_pem_private_key(valid.key.read_bytes(), None)
    encrypted.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    for certificate, key_file, words in (
        (past.certificate, past.key, "certificate has expired"),
        (soon.certificate, soon.key, "certificate is not yet valid"),
        (valid.certificate, other.key, "is not the private key of"),
        (valid.certificate, garbage, "is not the private key of"),
        (valid.certificate, encrypted, "passphrase"),
        (valid.certificate, binary, "not a PEM file"),
        (valid.certificate, tmp_path / "none.key", "No such file"),
        (valid.certificate, tmp_path, "Is a directory"),
        (tmp_path / "none.pem", valid.key, "No such file"),
        (garbage, valid.key, "no certificate in PEM form"),
        (valid.key, valid.key, "no certificate in PEM form"),
    ):
        message = refusal(certificate, key_file)
        assert words in message, (certificate, key_file)
        assert message.startswith(("SVC_TLS_CERT names /", "SVC_TLS_KEY names /"))
        assert "PRIVATE" not in message
