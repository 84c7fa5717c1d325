"""What the console withstands, in a real browser: hostile texts, foreign pages, used codes, and what axe-core finds."""

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.installations import Installation, wait_until
from tests.console.browsers import ASK, HOME, OpenPage, Page, bucket_place, skip_without_browser

skip_without_browser()

#: Each would set `window.ran` if it became markup, a script, a handler or an address.
PAYLOADS = [
    "<script>ran=1</script>",
    "<img src=x onerror=ran=1>",
    "<svg onload=ran=1>",
    "<iframe srcdoc='<script>parent.ran=1</script>'>",
    "</title></h1><script>ran=1</script>",
    "\"><img src=x onerror='ran=1'>",
    "' onmouseover='ran=1' autofocus onfocus='ran=1'",
    "javascript:ran=1",
    "<a href='javascript:ran=1'>x</a>",
    "<style>body{display:none}</style>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<base href='https://example.org/'>",
    "<form action='https://example.org'><button>x",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "{{constructor.constructor('ran=1')()}}",
    "${ran=1}",
    "<!--",
    "<plaintext>",
    "__proto__",
    "&lt;script&gt;ran=1&lt;/script&gt;",
]
TEXTS = [f"{payload} {n}" for n in range(5) for payload in PAYLOADS]
#: What must never be in the page.
MARKUP = (
    "main script, main img, main svg, main iframe, main style, meta[http-equiv], base, main link, [onerror], [onload]"
)


@pytest.fixture(scope="module")
def hostile(shared_installation: Installation) -> Installation:
    """A bucket whose titles, file names, tags, headings, texts and failures try to be markup."""
    with shared_installation.client() as client:
        fields = {"name": TEXTS[1], "description": TEXTS[2]}
        client.put("/v1/buckets/hostile", json=fields).raise_for_status()
        for n, text in enumerate(TEXTS):
            body = f"# {text}\n\nThe umber quay {n} has {text} in it.\n".encode()
            # Every tenth is no PDF, so that it fails with its name in sight.
            name, data = (f"{text}.pdf".replace("/", "|"), b"%PDF-1.7 " + body) if n % 10 == 9 else (f"{n}.md", body)
            form = {"title": text, "tags": text[:64].replace(",", ";")}
            answer = client.post("/v1/buckets/hostile/files", files={"file": (name, data)}, data=form)
            assert answer.is_success, answer.text

        def is_done() -> bool:
            store = client.get("/v1/buckets/hostile", params={"members": "false"}).json()["bucketStore"]
            return not store["pending_member_count"]

        wait_until(is_done, "all are read")
    return shared_installation


def assert_harmless(page: Page) -> None:
    """Nothing ran, nothing became markup, and the page is still there."""
    assert page.run("return [window.ran, document.querySelectorAll(arguments[0]).length]", MARKUP) == [None, 0]
    assert page.run("return getComputedStyle(document.body).display") == "block"
    assert page.run("return location.origin") == page.base_url


def test_a_hundred_hostile_texts_are_shown_as_they_are_and_none_runs(
    hostile: Installation, open_page: OpenPage
) -> None:
    page = open_page(hostile)
    page.sees(TEXTS[1])
    page.open(bucket_place("hostile", "?sort=title"))
    page.sees(TEXTS[1], TEXTS[2], "10 failed, 90 ready")
    seen: set[str] = set()
    titles = "return [...document.querySelectorAll('.long th a')].map((each) => each.textContent)"

    def has_seen_all() -> bool:
        seen.update(page.run(titles))
        page.run("scrollBy(0, 400)")
        return seen >= set(TEXTS)

    wait_until(has_seen_all, "all titles were in sight")
    assert_harmless(page)
    page.open("#/search?q=umber%20quay")
    page.sees("20 passages", "The umber quay")
    assert_harmless(page)
    page.click("", ".title a")
    page.find(".hit mark", "umber")
    assert_harmless(page)
    page.open(f"{ASK}?q=")
    page.type("#question", "What does the umber quay 7 have in it?\n")
    page.find(".hits blockquote", "umber quay")
    assert_harmless(page)
    with hostile.client() as client:
        members = client.get("/v1/buckets/hostile/sources", params={"status": "all", "limit": 1000}).json()["sources"]
    for source in [*members[::9], *(each for each in members[9:40] if each["status"] == "failed")]:
        page.run("location.hash = arguments[0]", f"#/s/{source['id']}")
        page.find("h1", source["title"])
        assert_harmless(page)


@pytest.mark.parametrize(
    "place",
    [
        "#/b/%3Cimg%20src=x%20onerror=ran=1%3E",
        "#/s/../../admin",
        "#/s/x?at=9-1&marks=a-b",
        "#/__proto__/x",
        "#/b/x?status=%22%3E%3Cscript%3E",
        "#/search?q=%3Csvg%20onload=ran=1%3E&b=%22%3E&mode=x",
    ],
)
def test_hostile_address_shows_an_error_or_nothing(hostile: Installation, open_page: OpenPage, place: str) -> None:
    page = open_page(hostile)
    page.open(place)
    page.find("main *")
    assert_harmless(page)


def test_code_is_erased_at_once_and_refused_the_second_time(hostile: Installation, open_page: OpenPage) -> None:
    page = open_page(hostile)
    url = page.sign_in()
    code = url.partition("=")[2]
    assert page.place == "#/"
    key = page.run("return JSON.parse(sessionStorage['svc.key']).key")
    assert not [each for each in page.requests() if code in each.partition("#")[0] or key in each]
    page.run("sessionStorage.clear()")
    page.driver.get("about:blank")
    page.driver.get(url)
    page.sees("Sign in", "This is no code of this service")
    assert code not in page.run("return location.href + document.body.outerHTML")


def test_key_that_is_revoked_ends_the_session_in_the_page(hostile: Installation, open_page: OpenPage) -> None:
    page = open_page(hostile)
    key_id = page.run("return JSON.parse(sessionStorage['svc.key']).id")
    assert hostile.svc("key", "revoke", key_id, "--force").exit == 0
    page.sees("Your session has ended", "svc console")
    assert page.run("return sessionStorage.length") == 0


def test_no_page_of_another_origin_frames_the_console_or_uses_its_answers(
    hostile: Installation, open_page: OpenPage
) -> None:
    page = open_page(hostile)
    console = f"{page.base_url}/console/"
    page.driver.get(f"data:text/html,<iframe src='{console}'></iframe>")
    page.driver.switch_to.frame(0)
    assert page.run("return location.href") == "chrome-error://chromewebdata/"
    page.driver.switch_to.default_content()
    page.complaints()
    script = "const done = arguments[1]; fetch(arguments[0]).then((a) => done(a.type), (e) => done(e.name))"
    assert page.driver.execute_async_script(script, f"{page.base_url}/v1/buckets") == "TypeError"
    page.open(HOME)
    page.sees("Sign out")


def faults_of(page: Page, rules: dict[str, Any]) -> list[str]:
    """What axe-core finds serious by these rules, and without rules what is too wide for a telephone, as lines."""
    newer = os.environ.get("SVC_TEST_AXE")
    page.run((Path(newer) if newer else files("axe_core_python") / "axe.min.js").read_text())
    script = "const done = arguments[1]; axe.run(document, arguments[0]).then((found) => done(found.violations))"
    lines = []
    for width in (1200,) if rules else (1200, 360):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        found: list[dict[str, Any]] = page.driver.execute_async_script(script, rules)
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        lines += [
            f"{each['id']} at {width} pixels: {node['html'][:200]} {node['failureSummary']}"
            for each in serious
            for node in each["nodes"]
        ]
        too_wide = page.run("return document.documentElement.scrollWidth - innerWidth")
        lines += [f"{too_wide} pixels too wide at {width}"] if too_wide > 0 else []
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return lines


@pytest.mark.parametrize(
    ("scheme", "rules"),
    # The schemes differ in their colours alone.
    [("light", {}), ("dark", {"runOnly": ["color-contrast", "link-in-text-block"]})],
    ids=["light", "dark"],
)
def test_axe_finds_nothing_serious_in_any_view(
    hostile: Installation, open_page: OpenPage, tmp_path: Path, scheme: str, rules: dict[str, Any]
) -> None:
    (tmp_path / "plain.md").write_text("# Hours\n\nThe cerise quay opens at nine o'clock.\n")
    assert hostile.svc("upload", str(tmp_path / "plain.md"), "-b", "plain").exit == 0
    page = open_page(hostile)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    with hostile.client() as client:
        members = client.get("/v1/buckets/hostile/sources", params={"status": "all", "limit": 20}).json()["sources"]
    places = {HOME: "table", "#/search?q=umber": ".hits mark"}
    places |= {f"#/s/{each['id']}": "dl" for each in members[8:10]}
    for place, selector in places.items():
        page.open(place)
        page.find(selector)
        assert faults_of(page, rules) == [], place
    page.open(ASK)
    page.type("#question", "When does the cerise quay open?\n")
    page.find(".state.ok", "proven")
    page.click("[1]", ".cite")
    page.find("aside mark")
    assert faults_of(page, rules) == []
    page.open(bucket_place("hostile"))
    page.find(".long tbody input").click()
    assert faults_of(page, rules) == []
    page.click("Delete…")
    page.sees("Delete 1 source?")
    assert faults_of(page, rules) == []
    page.click("Cancel", "dialog button")
    page.click("Sign out")
    page.sees("You have signed out.")
    assert faults_of(page, rules) == []
