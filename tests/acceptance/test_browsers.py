"""A page of another origin, in a real browser: it may send bytes to an upload's address, and nothing else."""

import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.browsers import find_browser, page_elsewhere, read_page
from tests.acceptance.calls import make_bucket, wait_ended
from tests.acceptance.installations import Installation

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium is installed; docs/development.md says how to get it"
)

LINE = "The umber quay was built of grey stone.\n"
LINES, PART_BYTES = 10_000, 150_000
DATA = (LINE * LINES).encode()

#: Sends the bytes in parts as a browser must, which can't read a 308, and asks once in the middle.
UPLOAD = """
const data = new TextEncoder().encode(%(line)s.repeat(%(lines)d));
const told = [];
async function send(range, body) {
  const headers = {"Content-Range": range, "Content-Type": "text/markdown", "X-Guploader-No-308": "yes"};
  const answer = await fetch(%(url)s, {method: "PUT", headers, body});
  told.push([answer.status, answer.headers.get("X-Http-Status-Code-Override"), answer.headers.get("Range")]);
  return answer;
}
try {
  let answer;
  for (let first = 0; first < data.length; first += %(part)d) {
    const body = data.slice(first, first + %(part)d);
    answer = await send(`bytes ${first}-${first + body.length - 1}/${data.length}`, body);
    if (first === 0) await send(`bytes */${data.length}`);
  }
  document.querySelector("pre").textContent = JSON.stringify({told, last: await answer.json()});
} catch (error) {
  document.querySelector("pre").textContent = JSON.stringify({told, error: String(error)});
}
"""
#: Tries a route with a key, which a page must not be able to.
DRIVE = """
const told = {};
for (const [name, options] of Object.entries({
  read: {headers: {Authorization: "Bearer %(key)s"}},
  plain: {},
  write: {method: "POST", headers: {"Content-Type": "text/plain"}, body: '{"slug": "from-a-page"}'},
})) {
  try { told[name] = (await fetch("%(url)s", options)).status; } catch (error) { told[name] = error.name; }
}
document.querySelector("pre").textContent = JSON.stringify(told);
"""


def run(script: str, folder: Path) -> Any:
    """What the script wrote into its page."""
    assert BROWSER is not None
    with page_elsewhere(script) as url:
        page = read_page(BROWSER, url, folder)
    found = re.search(r"<pre>(.+?)</pre>", page, re.DOTALL)
    assert found is not None, page
    return json.loads(html.unescape(found[1]))


def open_session(client: httpx.Client) -> dict[str, Any]:
    make_bucket(client, "inbox")
    answer = client.post("/v1/buckets/inbox/uploads", json={"filename": "notes.md", "size_bytes": len(DATA)})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_a_page_of_another_origin_uploads_in_parts(installation: Installation, tmp_path: Path) -> None:
    with installation.client() as client:
        session = open_session(client)
        wanted = {
            "line": json.dumps(LINE),
            "lines": LINES,
            "url": json.dumps(session["upload_url"]),
            "part": PART_BYTES,
        }
        told = run(UPLOAD % wanted, tmp_path)
        assert "error" not in told, told
        part = [200, "308", f"bytes=0-{PART_BYTES - 1}"]
        more = [200, "308", f"bytes=0-{2 * PART_BYTES - 1}"]
        assert told["told"] == [part, part, more, [200, None, None]]
        assert told["last"]["sha256"] == hashlib.sha256(DATA).hexdigest()
        path = f"/v1/buckets/inbox/uploads/{session['session_id']}/finalize"
        source = client.post(path).raise_for_status().json()
        assert wait_ended(client, source["id"])["ready"]
        assert client.get(f"/v1/sources/{source['id']}/content").content == DATA


def test_a_page_of_another_origin_drives_nothing_else(installation: Installation, tmp_path: Path) -> None:
    told = run(DRIVE % {"key": installation.key, "url": f"{installation.base_url}/v1/buckets"}, tmp_path)
    assert told == dict.fromkeys(("read", "plain", "write"), "TypeError")
    with installation.client() as client:
        assert client.get("/v1/buckets").json()["buckets"] == []
