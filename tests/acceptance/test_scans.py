"""Scans with a real daemon and the real `svc`: a recogniser of the tests reads pages that need no model."""

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from tests.acceptance.calls import get_source, make_bucket, search, upload, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation
from tests.scanned_pages import RECOGNIZER, page, pdf, saved, scan

BUCKET = "archive"


@pytest.fixture
def scanning(make_installation: MakeInstallation) -> Installation:
    return make_installation(SVC_OCR=RECOGNIZER, **UNLIMITED).start()


def progress_of(installation: Installation, source_id: str) -> dict[str, int]:
    with installation.client() as client:
        task_id = get_source(client, source_id)["task"]["id"]
        return dict(client.get(f"/v1/knowledge/tasks/{task_id}").raise_for_status().json()["progress"])


def test_status_counts_the_scans_that_are_being_read(scanning: Installation) -> None:
    slow = pdf([page("!wait 120")])
    with scanning.client() as client:
        make_bucket(client, BUCKET)
        ids = [upload(client, BUCKET, f"{n}.pdf", slow).raise_for_status().json()["id"] for n in range(3)]
        wait_until(
            lambda: all("pages_total" in progress_of(scanning, source_id) for source_id in ids),
            "all are known as scans",
        )
    shown = scanning.svc("status", "-b", BUCKET)
    assert "3 scans being read: 3 pages left" in shown.stdout, shown


def test_pictures_are_read_where_they_are_named_or_asked_for(scanning: Installation) -> None:
    folder = scanning.root / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nThe umber quay.\n")
    (folder / "plan.png").write_bytes(saved([page("The ochre crane.")], "PNG"))
    (folder / "photo.png").write_bytes(saved([page()], "PNG"))
    run = scanning.svc("upload", "docs", "-b", BUCKET, "--json", cwd=scanning.root)
    actions = {item["path"]: (item["action"], item["reason_code"]) for item in run.json["items"]}
    assert (run.exit, actions) == (
        0,
        {
            "docs/a.md": ("created", None),
            "docs/photo.png": ("skipped", "picture"),
            "docs/plan.png": ("skipped", "picture"),
        },
    )
    run = scanning.svc("upload", "docs", "-b", BUCKET, "--images", "--json", cwd=scanning.root)
    actions = {item["path"]: (item["action"], item["reason_code"]) for item in run.json["items"]}
    assert (run.exit, actions["docs/plan.png"], actions["docs/photo.png"]) == (
        0,
        ("created", None),
        ("skipped", "picture_empty"),
    )
    named = scanning.svc("upload", "docs/photo.png", "-b", "other", "--json", cwd=scanning.root)
    assert named.failure == (3, "no_extractable_text")
    with scanning.client() as client:
        (hit, *_) = search(client, "ochre crane", BUCKET)
    assert (hit["title"], hit["location"]["ocr"]) == ("docs/plan.png", True)


def test_failed_scans_are_offered_and_read_when_text_is_recognised(make_installation: MakeInstallation) -> None:
    installation = make_installation(SVC_OCR="off", **UNLIMITED).start()
    with installation.client() as client:
        make_bucket(client, BUCKET)
        ids = [
            upload(client, BUCKET, name, data).raise_for_status().json()["id"]
            for name, data in (("a.pdf", scan(1)), ("b.png", saved([page("The ochre crane.")], "PNG")))
        ]
        assert [wait_ended(client, source_id)["status"] for source_id in ids] == ["failed"] * 2
    assert "2 scans failed" in installation.svc("doctor").stdout
    assert installation.svc("source", "retry", "--ocr").exit == 2
    installation.stop()
    installation.environ["SVC_OCR"] = RECOGNIZER
    installation.start()
    assert "2 scans can be read now: `svc source retry --ocr`" in installation.svc("status").stdout
    assert "2 scans can be read now" in installation.svc("doctor").stdout
    retried = installation.svc("source", "retry", "--ocr", "--json").json
    assert sorted(retried["source_ids"]) == sorted(ids)
    with installation.client() as client:
        assert all(wait_ended(client, source_id)["ready"] for source_id in ids)
    assert "can be read now" not in installation.svc("status").stdout


@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("rapidocr", "onnxruntime", "cv2")),
    reason="needs the extra `ocr`: pip install -c constraints.txt -e '.[ocr]'",
)
def test_a_page_is_read_by_the_real_model_and_its_quote_is_proven(
    make_installation: MakeInstallation, tmp_path: Path
) -> None:
    sheet = Image.new("L", (1240, 1754), 255)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(34)
    words = ("The harbour master keeps a register of every vessel.", "Fees are due within fourteen days of departure.")
    for number, line in enumerate(words):
        draw.text((120, 160 + 60 * number), line, font=font, fill=0)
    file = BytesIO()
    sheet.rotate(2, fillcolor=255).save(file, "PDF", resolution=150)
    (tmp_path / "scan.pdf").write_bytes(file.getvalue())
    installation = make_installation(**UNLIMITED).start()
    sent = installation.svc("upload", str(tmp_path / "scan.pdf"), "-b", BUCKET, timeout_s=600)
    assert sent.exit == 0, sent
    answer = installation.svc("ask", "When are fees due?", "-b", BUCKET, "--json")
    (source, *_) = answer.json["sources"]
    assert (source["quote"], source["location"]["page"], source["location"]["ocr"]) == (words[1], 1, True)
    (tmp_path / "answer.json").write_text(answer.stdout)
    proven = installation.svc("cite", "verify", str(tmp_path / "answer.json"))
    assert (proven.exit, "recognised on the page" in proven.stdout) == (0, True), proven
