"""A tour of all features, for tests that watch everything a process does: `python -m tests.acceptance.tours FOLDER`.

It runs with whatever extras are installed, and calls nothing but servers of its own on loopback.
"""

import asyncio
import json
import struct
import sys
from collections.abc import Callable
from fcntl import ioctl
from gzip import compress
from importlib.util import find_spec
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from typing import Any

from svc_daemon.core.text.document_formats import FORMATS
from svc_daemon.core.text.media_types import find_format, from_filename
from tests import samples
from tests.acceptance.installations import Finished, Installation, wait_until
from tests.acceptance.sync_folders import fill, write
from tests.acceptance.test_mcp import stdio
from tests.acceptance.vectors import wait_embedded
from tests.acceptance.watches import Watch
from tests.acceptance.workloads import Site, document, hosting
from tests.conftest import UNLIMITED
from tests.embed.models import write_model
from tests.embed.vector_servers import vector_server
from tests.extract.compounds import make_doc, make_msg, make_ppt, make_xls
from tests.llm.chats import chatting, saying, streaming
from tests.tools import http_client, see_the_whole_job

#: Linux' requests that read and write the flags of a network interface, and the flag of one that is up.
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_SECTIONS = {"Quay": samples.PROSE}
_OFFICE = "<office:document-content xmlns:office='urn:oasis:names:tc:opendocument:xmlns:office:1.0' "
_OFFICE += "xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0'><office:body><office:text>"
_OFFICE += f"<text:p>{samples.PROSE}</text:p></office:text></office:body></office:document-content>"
_ODT = {"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": _OFFICE.encode()}
#: A file of every format.
FILES = {
    "a.txt": samples.PROSE.encode(),
    "a.md": document("markdown"),
    "a.rst": f"Quay\n====\n\n{samples.PROSE}\n".encode(),
    "a.adoc": f"= Quay\n\n{samples.PROSE}\n".encode(),
    "a.org": f"* Quay\n\n{samples.PROSE}\n".encode(),
    "a.tex": f"\\section{{Quay}}\n\n{samples.PROSE}\n".encode(),
    "a.1": f".TH QUAY 1\n.SH NAME\n{samples.PROSE}\n".encode(),
    "a.html": samples.make_html(f"<h1>Quay</h1><p>{samples.PROSE}</p>", title="Quay"),
    "a.pdf": samples.make_pdf([samples.PROSE, ""], title="Quay"),
    "a.docx": samples.make_docx(_SECTIONS, title="Quay"),
    "a.pptx": samples.make_pptx([("Quay", samples.PROSE)]),
    "a.xlsx": samples.make_xlsx({"Quay": [["stones", 3]]}),
    "a.csv": samples.make_csv([["quay", "stones"], ["umber", 3]]),
    "a.json": json.dumps({"quay": "umber"}).encode(),
    "a.ipynb": samples.make_notebook([("markdown", "# Quay", ""), ("code", "print(3)", "3")]),
    "a.eml": samples.make_mail("Quay", samples.PROSE, attachment="stones.bin"),
    "a.mbox": b"From quay@example.org Mon Jan  1 00:00:00 2024\n" + samples.make_mail("Quay", samples.PROSE),
    "a.ics": f"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:{samples.PROSE}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n".encode(),
    "a.enex": f"<en-export><note><title>Quay</title><content>{samples.PROSE}</content></note></en-export>".encode(),
    "a.epub": samples.make_epub(_SECTIONS),
    "a.log.gz": compress(samples.PROSE.encode()),
    "a.py": b"def quay():\n    return 'umber'\n",
    "a.rtf": b"{\\rtf1\\ansi The umber quay is built of stone.\\par}",
    "a.odt": samples.make_zip(_ODT),
    "a.doc": make_doc(f"{samples.PROSE}\r"),
    "a.xls": make_xls(samples.PROSE),
    "a.ppt": make_ppt([("Quay", [samples.PROSE], "")]),
    "a.msg": make_msg({"0037": "Quay", "1000": samples.PROSE}),
}
ENGINES = {
    "SVC_STATE_URL": "postgresql://svc@127.0.0.1:9/svc",
    "SVC_BLOBS_URL": "s3://bucket/prefix",
    "SVC_INDEX_URL": "http://127.0.0.1:9",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "eu-central-1",
    "AWS_ALLOW_HTTP": "true",
}


#: A question and where a search should find it, for `svc eval`.
_QUERIES = {"queries": [{"query": "Which quay of a.rtf is built of stone?", "source": "a.rtf"}]}


def main() -> None:
    root = Path(sys.argv[1])
    _bring_up_loopback()
    variables = {"SVC_FETCH_ALLOW": "127.0.0.0/8", "SVC_TRACES": "1", "OTEL_BSP_SCHEDULE_DELAY": "50", **UNLIMITED}
    with hosting() as site:
        one = Installation(root / "one", OTEL_EXPORTER_OTLP_ENDPOINT=site.server.url(""), **variables)
        try:
            _visit(one, root, site)
        finally:
            one.clear()


def _visit(one: Installation, root: Path, site: Site) -> None:
    one.root.mkdir(parents=True)
    _run(one.operate, "model", "install", str(write_model(root / "tiny")))
    one.start()
    _upload(one, root / "files")
    _import(one, site)
    wait_embedded(one)
    _read(one)
    asyncio.run(_use_tools(one))
    _sync(one, root / "folder")
    _copy(one, root)
    _operate(one, root)
    _use_model_servers(one)
    _fail_to_reach_engines(root)


def _run(command: Callable[..., Finished], *words: str, **options: Any) -> Finished:
    finished = command(*words, **options)
    assert finished.exit == 0, (words, finished)
    return finished


def _upload(one: Installation, folder: Path) -> None:
    """Upload a file of every format, and some in each other way."""
    formats = {name: find_format(from_filename(name) or "") for name in FILES}
    assert all(format_ in formats.values() for format_ in FORMATS if format_.key != "picture"), (
        "each format has a file, but for pictures, which need an extra"
    )
    for name in formats:
        write(folder, name, FILES[name])
    _run(one.svc, "upload", str(folder), "-b", "shelf", "--tag", "tour")
    (folder / "a.md").write_bytes(document("replaced"))
    _run(one.svc, "upload", str(folder / "a.md"), "-b", "shelf", "--mode", "session", "--replace", "--title", "a.md")


def _import(one: Installation, site: Site) -> None:
    """Import a file and a page from a server on loopback, which also takes webhook calls and traces."""
    url = site.server.url
    hook = ("--webhook", url("/hook"))
    _run(one.svc, "import", url("/ferries.md"), url("/page"), "-b", "shelf", *hook)
    _run(one.svc, "import", url("/page"), "-b", "shelf", "--refresh")
    wait_until(lambda: {"/hook", "/v1/traces"} <= set(site.server.paths), "a webhook call and traces")


def _read(one: Installation) -> None:
    golden = one.root / "golden.json"
    golden.write_text(json.dumps(_QUERIES))
    for mode in ("keyword", "semantic", "hybrid"):
        _run(one.svc, "search", "stone", "quay", "--mode", mode, "--explain")
    answer = _run(one.svc, "ask", "Which quay is built of stone?", "--json")
    _run(one.svc, "cite", "verify", "-", stdin=answer.stdout)
    _run(one.svc, "eval", str(golden), "-b", "shelf")
    shown = "status, doctor, events, daemon status, config list, bucket ls, agent ls, key ls, webhook deliveries"
    for words in f"{shown}, source ls -b shelf, source show a.md -b shelf, auth status, completion bash".split(", "):
        _run(one.svc, *words.split())
    with one.client() as client:
        assert "svc_requests" in client.get("/metrics").raise_for_status().text


async def _use_tools(one: Installation) -> None:
    async with http_client(one.base_url, one.key) as client:
        await see_the_whole_job(client)
    async with stdio(one) as client:
        await client.call_tool("svc-search", {"query": "quay"})


def _sync(one: Installation, folder: Path) -> None:
    fill(folder, 3)
    _run(one.svc, "sync", str(folder), "-b", "synced")
    (folder / "000" / "00.md").unlink()
    _run(one.svc, "sync", str(folder), "-b", "synced", "--prune", "delete", "--max-delete", "100%")
    watch = Watch(one, str(folder), "-b", "synced")
    watch.wait_for_state("watching")
    write(folder, "new.md", "# New\n\nA new note.\n")
    watch.wait_for_item("created", "new.md")
    watch.end()


def _copy(one: Installation, root: Path) -> None:
    """Copy a bucket and the whole installation, and delete what was copied."""
    archive = str(root / "shelf.tar")
    _run(one.svc, "bucket", "export", "shelf", archive)
    _run(one.svc, "bucket", "import", archive, "-b", "copy")
    _run(one.svc, "source", "rm", "a.md", "-b", "copy", "--force")
    _run(one.svc, "bucket", "rm", "copy", "--force")


def _operate(one: Installation, root: Path) -> None:
    _run(one.operate, "backup", str(root / "backups"))
    assert one.stop() == 0
    _run(one.operate, "verify", "--read-data")
    two = Installation(root / "two")
    two.root.mkdir()
    _run(two.operate, "restore", str(root / "backups"))


def _use_model_servers(one: Installation) -> None:
    with chatting(streaming(saying("The quay is built of stone. [1]"))) as chat, vector_server() as vectors:
        one.environ |= {"SVC_LLM_BASE_URL": chat.url("/v1"), "SVC_LLM_MODEL": "any"}
        one.environ |= {"SVC_EMBED_BASE_URL": vectors.base_url, "SVC_EMBED_MODEL": "any"}
        one.start()
        _run(one.svc, "ask", "Which quay is built of stone?")
        wait_embedded(one)
        assert (chat.requests, vectors.asked) != ([], [])
        one.clear()


def _fail_to_reach_engines(root: Path) -> None:
    """Load the libraries of a cluster, whose engines don't listen."""
    if all(map(find_spec, ("obstore", "psycopg", "pymilvus"))):
        cluster = Installation(root / "cluster", **ENGINES)
        cluster.root.mkdir()
        assert cluster.operate("verify").exit != 0


def _bring_up_loopback() -> None:
    """Bring up the loopback interface of a new network namespace; anywhere else this has no effect."""
    with socket(AF_INET, SOCK_DGRAM) as control:
        name, flags = struct.unpack("16sh", ioctl(control, _GET_FLAGS, struct.pack("16sh", b"lo", 0)))
        if not flags & _UP:
            ioctl(control, _SET_FLAGS, struct.pack("16sh", name, flags | _UP))


if __name__ == "__main__":
    main()
