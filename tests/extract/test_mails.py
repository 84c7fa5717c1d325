"""Mails: all that their reader sees, in its order, in its encoding; attachments are read or named."""

import base64
from email.mime.application import MIMEApplication
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest

from svc_daemon.core.text.chunking import Document
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests import samples
from tests.extract.readings import read, refused, shape


def read_mail(*parts: MIMEBase, kind: str = "mixed", subject: str = "Arrival") -> Document:
    """Read a mail with these parts."""
    mail = MIMEMultipart(kind)
    mail["From"], mail["Subject"] = "keeper@harbour.example", subject
    for part in parts:
        mail.attach(part)
    return read(mail.as_bytes(), "a.eml")


def text(words: str, kind: str = "plain", charset: str = "utf-8") -> MIMEText:
    return MIMEText(words, kind, charset)


def file(data: bytes, name: str, kind: str = "octet-stream") -> MIMEApplication:
    part = MIMEApplication(data, kind)
    part.add_header("Content-Disposition", "attachment", filename=name)
    return part


def raw(*lines: str | bytes) -> Document:
    """Read a mail from the lines of its source."""
    joined = b"\r\n".join(line if isinstance(line, bytes) else line.encode() for line in ("From: a@b.example", *lines))
    return read(joined, "a.eml")


def body(document: Document) -> list[str]:
    """Return the texts of a mail below its subject and headers."""
    return [block.text for block in document.blocks][2:]


def test_headers_text_and_attachments_follow_each_other() -> None:
    picture = file(b"\x89PNG\r\n\x1a\n\0", "chart.png", "png")
    document = read_mail(text("At noon.\n\nBe there.\n \nNow."), picture, file(b"Depth 7", "note.txt"))
    first, *others = shape(document)
    assert first == ("heading", "Arrival", ("Arrival",))
    assert [words for _, words, _ in others] == [
        *("From: keeper@harbour.example", "At noon.", "Be there.", "Now."),
        *("Attachment: chart.png", "Attachment: note.txt", "Depth 7"),
    ]
    assert others[-1] == ("paragraph", "Depth 7", ("Arrival", "Attachment: note.txt"))
    assert document.parts == {"attachments": 1}
    assert len(document.warnings) == 1
    assert "chart.png was not read" in document.warnings[0]


@pytest.mark.parametrize(
    ("parts", "expected"),
    (
        ((text("One."), file(b"\0", "a.png", "png"), text("Two.")), ["One.", "Two.", "Attachment: a.png"]),
        ((text("One."), text("<p>Two.</p>", "html"), text("Three.")), ["One.", "Two.", "Three."]),
        ((text("<b>O</b>ne.", "html"), text("<ul><li>a<li>b</ul>", "html")), ["One.", "a", "b"]),
        ((text("Meet {bold}here.".replace("{bold}", "<bold>"), "enriched"),), ["Meet here."]),
    ),
)
def test_text_parts_are_read_in_their_order(parts: tuple[MIMEBase, ...], expected: list[str]) -> None:
    assert body(read_mail(*parts)) == expected


@pytest.mark.parametrize(
    ("plain", "html", "expected"),
    (
        ("See the HTML version.", f"<p>{samples.PROSE}</p>", samples.PROSE),
        (samples.PROSE, "<p>Open in the browser.</p>", samples.PROSE),
        ("", "<p>Only here.</p>", "Only here."),
        ("Only here.", "<html><body><img src=x></body></html>", "Only here."),
        ("Name Berth Anna 7", "<table><tr><td>Anna<td>7</table>Name Berth", "Anna | 7"),
    ),
)
def test_of_two_forms_the_one_with_the_words_is_read_once(plain: str, html: str, expected: str) -> None:
    document = read_mail(text(plain), text(html, "html"), kind="alternative")
    assert body(document)[0] == expected
    assert document.text.count(expected) == 1


def test_form_with_an_attachment_that_is_not_read_keeps_the_attachment() -> None:
    rich = MIMEMultipart("mixed")
    for part in (text("<p>At noon.</p>", "html"), file(b"a,b\n1,2\n", "tides.csv", "csv")):
        rich.attach(part)
    related = MIMEMultipart("related")
    image = file(b"\x89PNG", "logo.png", "png")
    image["Content-ID"] = "<logo>"
    image.replace_header("Content-Disposition", "inline; filename=logo.png")
    related.attach(rich)
    related.attach(image)
    document = read_mail(text(f"At noon. {samples.PROSE}"), related, kind="alternative")
    assert body(document)[0].startswith("At noon. ")
    assert "Attachment: tides.csv" in document.text
    assert "1,2" in document.text


def test_invitation_beside_the_forms_of_a_text_is_read_at_the_end() -> None:
    invitation = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:High tide\nEND:VEVENT\nEND:VCALENDAR"
    document = read_mail(text("Come."), text("<p>Come.</p>", "html"), text(invitation, "calendar"), kind="alternative")
    assert body(document) == ["Come.", "Attachment: text/calendar", "High tide"]


def test_forwarded_mails_are_read_in_their_place() -> None:
    inner = MIMEText("Inner words.")
    inner["Subject"], inner["From"] = "Old news", '"Bo, the pilot" <bo@harbour.example>'
    document = read_mail(text("Above."), MIMEMessage(inner), text("Below."))
    assert [(block.text, block.headings) for block in document.blocks][2:] == [
        ("Above.", ("Arrival",)),
        ("Old news", ("Arrival", "Old news")),
        ("From: Bo, the pilot <bo@harbour.example>", ("Arrival", "Old news")),
        ("Inner words.", ("Arrival", "Old news")),
        ("Below.", ("Arrival",)),
    ]
    assert document.parts == {"forwarded_mails": 1}


def test_forwarded_mail_that_was_encoded_is_read() -> None:
    inner = base64.encodebytes(b"Subject: Old news\n\nInner words.\n").decode().strip()
    head = "Content-Type: multipart/mixed; boundary=b", "", "--b", "Content-Type: message/rfc822"
    assert "Inner words." in raw(*head, "Content-Transfer-Encoding: base64", "", inner, "--b--").text


def test_mails_within_mails_end_at_a_depth_with_a_warning() -> None:
    mail: MIMEBase = MIMEText("Innermost.")
    for number in range(15):
        outer = MIMEMultipart()
        outer["Subject"] = f"Level {number}"
        outer.attach(MIMEMessage(mail))
        mail = outer
    document = read_mail(MIMEMessage(mail))
    assert "Level 6" in document.text
    assert "Innermost" not in document.text
    assert document.warnings == ("Mails within more than 10 mails were not read.",)


@pytest.mark.parametrize(
    ("words", "codec", "label"),
    (
        ("囍宴会议记录", "gbk", "gb2312"),
        ("①㈱の議事録", "cp932", "shift_jis"),
        ("똠방각하", "cp949", "ks_c_5601-1987"),
        ("Grüße “an” alle", "cp1252", "iso-8859-1"),
        ("Grüße an alle", "utf-8", "us-ascii"),
        ("Grüße an alle", "cp1252", "utf-8"),
        ("Grüße an alle", "utf-8", "unknown-8bit"),
        ("議事録", "iso2022_jp", "iso-2022-jp"),
    ),
)
def test_text_and_subject_are_read_in_their_encoding(words: str, codec: str, label: str) -> None:
    data = words.encode(codec)
    encoded = base64.b64encode(data).decode()
    subject, name = f"=?{label}?B?{encoded}?=", f"=?{label}?Q?{''.join(f'={byte:02X}' for byte in data)}?="
    kind = f"Content-Type: text/plain; charset={label}"
    for lines in (
        (f"Subject: {subject}", f"Cc: {name}", kind, "Content-Transfer-Encoding: base64", "", encoded),
        (f"Subject: {subject}", f"Cc: {name}", kind, "", data),
    ):
        document = raw(*lines)
        assert document.title == words
        assert f"Cc: {words}" in document.text
        assert document.blocks[-1].text == words


def test_word_that_is_split_between_encoded_pieces_is_whole() -> None:
    data = "Sitzungsübersicht für Köln".encode()
    pieces = [base64.b64encode(part).decode() for part in (data[:9], data[9:])]
    document = raw(f"Subject: Re: =?utf-8?B?{pieces[0]}?=", f" =?UTF-8?B?{pieces[1]}?= (neu)", "", "a")
    assert document.title == "Re: Sitzungsübersicht für Köln (neu)"


def test_subject_without_an_encoding_has_that_of_the_text() -> None:
    document = raw(b"Subject: " + "会议记录".encode("gbk"), "Content-Type: text/plain; charset=gbk", "", "a")
    assert document.title == "会议记录"


def test_html_is_read_in_the_encoding_of_its_own() -> None:
    page = '<meta charset="iso-8859-2"><p>Zażółć gęślą jaźń'.encode("iso-8859-2")
    assert raw("Subject: a", "Content-Type: text/html", "", page).blocks[-1].text == "Zażółć gęślą jaźń"


def test_preview_that_no_reader_sees_is_kept_apart() -> None:
    document = read_mail(text("<div style='display:none'>Preview</div><p>At noon.</p>", "html"))
    assert body(document) == ["At noon."]
    assert [each.text for each in document.hidden] == ["Preview"]


def test_wrapped_lines_are_joined_as_their_form_says() -> None:
    kind = "Content-Type: text/plain; charset=utf-8; format=flowed"
    document = raw("Subject: a", kind, "", "One two ", "three.", "> cited ", "> words", "-- ", "Ada")
    assert document.blocks[-1].text == "One two three.\n> cited words\n-- \nAda"
    joined = raw("Subject: a", f"{kind}; delsp=yes", "", "東 ", "京")
    assert joined.blocks[-1].text == "東京"


def test_file_within_the_text_is_named_and_is_no_text() -> None:
    document = raw("Subject: a", "", "Above.", "begin 644 tide.dat", "#0V%T", "`", "end", "Below.")
    assert document.blocks[-1].text == "Above.\nAttachment: tide.dat\nBelow."
    assert "tide.dat" in document.warnings[0]


def test_attachments_are_read_by_their_type_and_counted_against_the_limits() -> None:
    docx = samples.make_docx({"One": "Text one."})
    nested = samples.make_mail("Inner", "Inner words.", attachment="deep.txt")
    document = read_mail(text("Above."), file(docx, "a.docx"), file(nested, "b.eml"), file(b"\x1f\x8b", "c.txt.gz"))
    assert ("One", ("Arrival", "Attachment: a.docx", "One")) in [(each.text, each.headings) for each in document.blocks]
    assert "Inner words." in document.text
    assert "Attachment: deep.txt" in document.text
    assert "bytes" not in document.text
    assert any("c.txt.gz was not read" in warning for warning in document.warnings)
    mail = MIMEMultipart()
    for number in range(4):
        mail.attach(file(b"words", f"{number}.txt"))
    mail["Subject"], mail["From"] = "a", "b"
    limited = read(mail.as_bytes(), "a.eml", archive_entries=2, archive_bytes=7)
    assert limited.text.count("words") == 1
    assert len(limited.warnings) == 3


def test_attachment_that_is_damaged_costs_only_itself() -> None:
    document = read_mail(text("Above."), file(samples.make_corrupt_pdf(), "a.pdf"), file(b"Depth 7", "b.txt"))
    assert body(document) == ["Above.", "Attachment: a.pdf", "Attachment: b.txt", "Depth 7"]
    assert "PDF is damaged" in document.warnings[0]


def test_encrypted_mail_is_refused_and_an_encrypted_part_is_named() -> None:
    encrypted = MIMEMultipart("encrypted", protocol="application/pgp-encrypted")
    encrypted.attach(MIMEApplication(b"Version: 1", "pgp-encrypted"))
    encrypted["From"], encrypted["Subject"] = "a", "b"
    assert "password" in refused(encrypted.as_bytes(), "a.eml", SourceErrorCode.DOCUMENT_ENCRYPTED)
    sealed = b"From: a\nSubject: b\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nMIAG"
    refused(sealed, "a.eml", SourceErrorCode.DOCUMENT_ENCRYPTED)
    del encrypted["From"], encrypted["Subject"]
    document = read_mail(text("Above."), encrypted)
    assert body(document) == ["Above."]
    assert document.warnings == ("A part of the mail is encrypted and was not read.",)


def test_report_of_a_delivery_is_read() -> None:
    kind = "Content-Type: multipart/report; boundary=b"
    status = "Content-Type: message/delivery-status", "", "Reporting-MTA: dns; mx", "", "Status: 5.1.1", "", "--b--"
    assert "Status: 5.1.1" in raw("Subject: a", kind, "", "--b", "", "Not delivered.", "--b", *status).text


@pytest.mark.parametrize(
    "data",
    (
        b'From: a:;<@\r\nTo: =?x?q?y?= <"@>,,\r\nSubject: Harbour\r\n\r\nWords.\r\n',
        b"\xef\xbb\xbfFrom: a\nSubject: =?utf-8?B?%%%?= =?utf-8?B?SGFyYm91=?=\n\nWords.\n",
        b"From: a\nSubject: b\nContent-Type: multipart/mixed\n\nWords.",
        b"From: a\nSubject: b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nWords.",
        b"From: a\nSubject: b\nContent-Type: text/plain; charset*=utf-8''x\n\nWords.",
        "From: a\nSubject: b\n\nWords.".encode("utf-16"),
    ),
)
def test_malformed_mail_is_read_as_visible_text(data: bytes) -> None:
    assert read(data, "a.eml").blocks[-1].text == "Words."


def test_mail_with_binary_parts_is_read() -> None:
    lines = "Subject: a", "Content-Type: multipart/mixed; boundary=b", "", "--b", "", "Words.", "--b"
    binary = "Content-Type: image/png; name=a.png", "Content-Transfer-Encoding: binary", "", b"\x89PNG\0\0\xff", "--b--"
    assert body(raw(*lines, *binary)) == ["Words.", "Attachment: a.png"]


def test_saved_web_page_is_read_without_the_files_that_it_shows() -> None:
    kind = "Content-Type: multipart/related; type=text/html; boundary=b"
    page = "Content-Type: text/html", "Content-Location: https://a.example/", "", "<p>Shown.</p>", "--b"
    style = "Content-Type: text/css", "Content-Location: https://a.example/a.css", "", "p {color: red}", "--b--"
    source = "\r\n".join(("From: <Saved>", "Subject: Quay", kind, "", "--b", *page, *style)).encode()
    document = read(source, "a.mhtml")
    assert [block.text for block in document.blocks] == ["Quay", "From: <Saved>", "Shown."]
    assert document.warnings == ()


def test_file_names_are_decoded() -> None:
    for disposition in (
        "attachment; filename*=gb2312''%D6%D0.bin",
        'attachment; filename="=?gb2312?B?1tA=?=.bin"',
        "attachment; filename*0*=gb2312''%D6; filename*1*=%D0.bin",
    ):
        lines = "Content-Type: multipart/mixed; boundary=b", "", "--b", f"Content-Disposition: {disposition}"
        assert "中.bin" in raw("Subject: a", *lines, "Content-Type: image/png", "", "x", "--b--").text, disposition


def test_mailbox_is_read_mail_by_mail_with_or_without_an_extension() -> None:
    def mail(subject: str, *lines: str) -> str:
        return "\n".join(("From a@b.example Tue Mar  3 14:05:10 2026", "From: a@b.example", subject, *lines, "", ""))

    box = mail("Subject: Rent", "", "From home:", ">From May on, 80 euros.", ">>From June on, 90.")
    encoded = ("Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: base64", "")
    box += mail(
        "Subject: =?utf-8?q?M=C3=BCll?=", *encoded, base64.b64encode("<p>Käse: <b>Friday</b>".encode()).decode()
    )
    box += mail("Subject: Sealed", 'Content-Type: multipart/encrypted; boundary="b"', "", "--b--")
    attached = "\n".join(("From c@d.example Tue Mar  3 14:05:10 2026", file(b"Depth 7", "note.txt").as_string()))
    for name in ("in.mbox", "Sent"):
        document = read((box + attached).encode(), name)
        assert [(words, headings) for kind, words, headings in shape(document) if "From: " not in words] == [
            *(("Rent", ("Rent",)), ("From home:\nFrom May on, 80 euros.\n>From June on, 90.", ("Rent",))),
            *(("Müll", ("Müll",)), ("Käse: Friday", ("Müll",))),
            *(("Attachment: note.txt", ("Attachment: note.txt",)), ("Depth 7", ("Attachment: note.txt",))),
        ]
        assert len(document.warnings) == 1
        assert document.warnings[0].startswith("Mail 3 was not read:")


def test_mail_that_thunderbird_has_deleted_is_kept_apart() -> None:
    mail = "From - Tue Mar 03 14:05:10 2026\r\nX-Mozilla-Status: {}\r\nSubject: {}\r\n\r\nWords.\r\n\r\n"
    box = "".join(mail.format(*each) for each in (("0001", "Kept"), ("0009", "Gone"), ("1000", "New")))
    document = read(box.encode(), "Inbox")
    assert [block.text for block in document.blocks] == ["Kept", "Words.", "New", "Words."]
    assert [(each.text, each.reason) for each in document.hidden] == [("Gone Words.", "deleted mail")]


def test_mailbox_may_have_mails_without_headers_or_no_mails() -> None:
    mails = [f"From a@b.example Tue Mar  3 14:05:10 2026\n\n{words}\n\n" for words in ("First words.", "More.")]
    assert read("".join(mails).encode(), "a.mbox").text == "First words.\n\nMore."
    assert read(b"Some words.\n", "a.mbox").text == "Some words.\n"


def test_text_in_base64_whose_end_is_missing_is_read() -> None:
    body = base64.b64encode(b"The eider count is done.").decode()
    head = "Subject: Count\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n"
    assert read(f"{head}{body[:-3]}\n".encode(), "a.eml").blocks[-1].text == "The eider count is do"


def test_mailbox_that_takes_too_long_is_read_in_part() -> None:
    mail = b"From a@b.example Tue Mar  3 14:05:10 2026\nSubject: Rent\n\n80 euros.\n\n"
    document = read(mail * 3, "a.mbox", cpu_seconds=0)
    assert [block.text for block in document.blocks] in ([], ["Rent", "80 euros."])
    (warning,) = document.warnings
    assert warning.endswith("on were not read: the mailbox has 3. Split it.")


def test_mail_of_apple_ends_before_what_its_program_adds() -> None:
    mail = "Subject: Rent\nContent-Transfer-Encoding: quoted-printable\n\n80 =E2=82=AC\n"
    document = read(f"{len(mail)}      \n{mail}<?xml?><plist/>\n".encode(), "a.emlx")
    assert [block.text for block in document.blocks] == ["Rent", "80 €"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [("cid:f@a.example", True), ("https://a.example/f?a=1&amp;b=2", True), ("https://a.example/g", False)],
)
def test_frame_of_a_saved_web_page_is_read(source: str, shown: bool) -> None:
    kind = "Content-Type: multipart/related; type=text/html; boundary=b"
    page = "Content-Type: text/html", "", f'<p>Shown.</p><iframe width=9 src="{source}"></iframe>', "--b"
    place = "Content-ID: <f@a.example>", "Content-Location: https://a.example/f?a=1&b=2"
    document = raw(
        "Subject: Quay", kind, "", "--b", *page, "Content-Type: text/html", *place, "", "<p>Framed.</p>", "--b--"
    )
    assert body(document) == (["Shown.", "Framed."] if shown else ["Shown."])


def test_invitation_that_is_there_twice_is_read_once() -> None:
    event = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Tea\r\nLOCATION:Pier 2\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    document = read_mail(text("Come."), text(event, "calendar"), file(event.encode(), "invite.ics", "ics"))
    assert body(document) == ["Come.", "Attachment: text/calendar", "Tea", "Location: Pier 2"]
    assert document.warnings == ()
