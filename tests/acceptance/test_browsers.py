"""A page of another origin in a real browser can send bytes to an upload URL, and no other requests."""

import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.calls import make_bucket, wait_ended
from tests.acceptance.installations import Installation
from tests.fetch.servers import serving

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
#: The page's time limit, on a virtual clock that stands still during requests.
SCRIPT_MS = 30_000
pytestmark = pytest.mark.skipif(not BROWSER, reason="no Chromium is installed; docs/development.md says how to get it")

LINE = "The umber quay was built of grey stone.\n"
LINES, PART_BYTES = 10_000, 150_000
DATA = (LINE * LINES).encode()

#: Sends the bytes in parts and asks for the offset once; browsers can't read a 308, so a header asks for a 200.
UPLOAD = """
const data = new TextEncoder().encode(%(line)s.repeat(%(lines)d));
const answers = [];
async function send(range, body) {
  const headers = {"Content-Range": range, "Content-Type": "text/markdown", "X-Guploader-No-308": "yes"};
  const answer = await fetch(%(url)s, {method: "PUT", headers, body});
  answers.push([answer.status, answer.headers.get("X-Http-Status-Code-Override"), answer.headers.get("Range")]);
  return answer;
}
try {
  let answer;
  for (let first = 0; first < data.length; first += %(part)d) {
    const body = data.slice(first, first + %(part)d);
    answer = await send(`bytes ${first}-${first + body.length - 1}/${data.length}`, body);
    if (first === 0) await send(`bytes */${data.length}`);
  }
  document.querySelector("pre").textContent = JSON.stringify({answers, last: await answer.json()});
} catch (error) {
  document.querySelector("pre").textContent = JSON.stringify({answers, error: String(error)});
}
"""
#: Requests an API route with and without a key, which the browser must block.
DRIVE = """
const answers = {};
for (const [name, options] of Object.entries({
  read: {headers: {Authorization: "Bearer %(key)s"}},
  plain: {},
  write: {method: "POST", headers: {"Content-Type": "text/plain"}, body: '{"slug": "from-a-page"}'},
})) {
  try { answers[name] = (await fetch("%(url)s", options)).status; } catch (error) { answers[name] = error.name; }
}
document.querySelector("pre").textContent = JSON.stringify(answers);
"""


def run(script: str, folder: Path) -> Any:
    """Run the script in a page of its own origin in a headless browser, and return the JSON that it writes there."""
    assert BROWSER is not None
    page = f"<!doctype html><title>x</title><body><pre></pre><script type=module>{script}</script></body>".encode()

    with serving(lambda exchange: exchange.answer(200, page, content_type="text/html; charset=utf-8")) as server:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
        flags += [f"--virtual-time-budget={SCRIPT_MS}", f"--user-data-dir={folder / 'profile'}"]
        command = [BROWSER, *flags, server.url("/", host="localhost")]
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
        ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    found = re.search(r"<pre>(.+?)</pre>", ended.stdout, re.DOTALL)
    assert found is not None, ended.stdout
    return json.loads(html.unescape(found[1]))


@pytest.mark.rule("service.session")
def test_page_of_another_origin_uploads_in_parts(installation: Installation, tmp_path: Path) -> None:
    with installation.client() as client:
        make_bucket(client, "inbox")
        body = {"filename": "notes.md", "size_bytes": len(DATA)}
        session = client.post("/v1/buckets/inbox/uploads", json=body).raise_for_status().json()
        url = json.dumps(session["upload_url"])
        shown = run(UPLOAD % {"line": json.dumps(LINE), "lines": LINES, "url": url, "part": PART_BYTES}, tmp_path)
        assert "error" not in shown, shown
        part = [200, "308", f"bytes=0-{PART_BYTES - 1}"]
        assert shown["answers"] == [part, part, [200, "308", f"bytes=0-{2 * PART_BYTES - 1}"], [200, None, None]]
        assert shown["last"]["sha256"] == hashlib.sha256(DATA).hexdigest()
        path = f"/v1/buckets/inbox/uploads/{session['session_id']}/finalize"
        source = client.post(path).raise_for_status().json()
        assert wait_ended(client, source["id"])["ready"]
        assert client.get(f"/v1/sources/{source['id']}/content").content == DATA


def test_page_of_another_origin_cannot_use_the_api(installation: Installation, tmp_path: Path) -> None:
    shown = run(DRIVE % {"key": installation.key, "url": f"{installation.base_url}/v1/buckets"}, tmp_path)
    assert shown == dict.fromkeys(("read", "plain", "write"), "TypeError")
    with installation.client() as client:
        assert client.get("/v1/buckets").json()["buckets"] == []
