"""Text is read in its encoding, declared or not, without loss and with a warning for a guess, also from gzip files."""

# ruff: noqa: RUF001 - texts in many scripts

import random
import zlib
from gzip import compress
from pathlib import Path

import pytest

from svc_daemon.core.text.chunking import Extraction
from svc_daemon.core.text.media_types import detect
from svc_daemon.extract.extractors import Extractor
from svc_daemon.extract.formats.text.texts import decode
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests import samples
from tests.extract.readings import document_at, lines, read, refused

#: A sentence or two by language.
TEXTS = {
    "zh": "合同编号为七七一九。供应商必须在五天内发货，否则买方可以取消订单。",
    "tw": "供應商必須在五天內出貨，否則買方可以取消訂單，並要求退款。",
    "ja": "供給者は五日以内に商品を発送しなければならない。そうでない場合、注文は取り消されます。",
    "ko": "공급자는 오 일 안에 물건을 보내야 하며 그렇지 않으면 주문을 취소할 수 있습니다.",
    "ru": "Поставщик обязан отправить товар в течение пяти дней, иначе заказ отменяется.",
    "uk": "Постачальник зобов'язаний надіслати товар протягом п'яти днів, інакше замовлення буде скасовано.",
    "de": "Der Lieferant muß die Ware binnen fünf Tagen übergeben, sonst dürfen Käufer zurücktreten.",
    "fr": "Le fournisseur doit livrer l’entrepôt à l’été ; sinon la société annulera la commande déjà passée.",
    "pl": "Dostawca musi wysłać towar w ciągu pięciu dni, w przeciwnym razie zamówienie będzie anulowane.",
    "cs": "Dodavatel musí zboží odeslat do pěti dnů, jinak může kupující objednávku zrušit.",
    "hu": "A szállító öt napon belül köteles elküldeni az árut, különben a vevő eláll a szerződéstől.",
    "tr": "Tedarikçi malı beş gün içinde göndermelidir, aksi halde alıcı siparişi iptal edebilir.",
    "el": "Ο προμηθευτής πρέπει να στείλει τα εμπορεύματα μέσα σε πέντε ημέρες.",
    "he": "הספק חייב לשלוח את הסחורה תוך חמישה ימים, אחרת הקונה רשאי לבטל את ההזמנה.",
    "ar": "يجب على المورد إرسال البضاعة خلال خمسة أيام وإلا جاز للمشتري إلغاء الطلب.",
    "th": "ผู้ขายต้องส่งสินค้าภายในห้าวัน มิฉะนั้นผู้ซื้อสามารถยกเลิกคำสั่งซื้อได้",
    "lt": "Tiekėjas privalo išsiųsti prekes per penkias dienas, kitaip pirkėjas gali atšaukti užsakymą.",
}


@pytest.mark.parametrize(
    ("language", "codec", "name"),
    (
        *(("zh", "gbk", "GBK"), ("zh", "gb2312", "GBK"), ("zh", "gb18030", "GBK"), ("tw", "big5", "Big5")),
        *(("ja", "shift_jis", "Shift_JIS"), ("ja", "euc_jp", "EUC-JP"), ("ja", "iso2022_jp", "ISO-2022-JP")),
        *(("ko", "euc_kr", "EUC-KR"), ("ru", "cp1251", "Windows-1251"), ("ru", "koi8-r", "KOI8-R")),
        *(("ru", "cp866", "code page 866"), ("ru", "iso8859-5", "ISO-8859-5"), ("uk", "cp1251", "Windows-1251")),
        *(("de", "cp1252", "Windows-1252"), ("fr", "cp1252", "Windows-1252"), ("de", "latin-1", "Windows-1252")),
        *(("de", "cp850", "code page 850"), ("fr", "mac-roman", "Mac Roman"), ("pl", "cp1250", "Windows-1250")),
        *(("pl", "iso8859-2", "ISO-8859-2"), ("cs", "cp1250", "Windows-1250"), ("cs", "iso8859-2", "ISO-8859-2")),
        *(("hu", "cp1250", "Windows-1250"), ("tr", "cp1254", "Windows-1254"), ("el", "cp1253", "Windows-1253")),
        *(("he", "cp1255", "Windows-1255"), ("ar", "cp1256", "Windows-1256"), ("th", "tis-620", "Windows-874")),
        *(("lt", "cp1257", "Windows-1257"), ("zh", "utf-16-le", "UTF-16LE"), ("ja", "utf-16-be", "UTF-16BE")),
    ),
)
@pytest.mark.parametrize("layout", ("{}", "{}\r\n", "<!-- \r\n\r\n {} -->\n", "Lot 7719, {} (OK)\n\nend"))
def test_text_in_an_undeclared_encoding_is_read_without_loss_and_the_guess_is_named(
    language: str, codec: str, name: str, layout: str
) -> None:
    text = layout.format(TEXTS[language])
    read_text, warnings = decode(text.encode(codec))
    assert (read_text, warnings) == (text, (f"The text is not UTF-8; it was read as {name}.",))


@pytest.mark.parametrize("text", ("The redpoll list is closed.\n", "Grüße aus Köln", "a,b\n1,2\n", "Привет, мир"))
@pytest.mark.parametrize("codec", ("utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-16", "utf-32"))
def test_text_with_a_mark_or_with_two_or_four_bytes_for_a_character_is_read(text: str, codec: str) -> None:
    assert decode(text.encode(codec))[0] == text


def test_text_with_two_bytes_for_a_character_may_have_an_odd_byte_at_its_end_or_a_nul() -> None:
    text = "The redpoll list is closed, and so is the other.\n" * 9
    assert decode(text.encode("utf-16-le") + b"\n")[0].startswith(text)
    assert decode(f"{text}\0{text}".encode("utf-16-be"))[0] == f"{text}\0{text}"


def test_few_nul_bytes_in_a_long_text_leave_it_text() -> None:
    text = f"{TEXTS['de']}\n" * 4
    assert decode(f"{text}\0\0{text}".encode())[0] == f"{text}\0\0{text}"
    assert detect(f"{text}\0{text}".encode(), "a.log") == "text/plain"


@pytest.mark.parametrize("codec", ("cp1252", "gbk", "cp1251", "shift_jis"))
def test_an_encoding_is_decided_by_the_whole_file(codec: str) -> None:
    ending = {"cp1252": TEXTS["de"], "gbk": TEXTS["zh"], "cp1251": TEXTS["ru"], "shift_jis": TEXTS["ja"]}[codec]
    text = "A plain line without accents about ships.\n" * 9000 + ending
    assert decode(text.encode(codec))[0] == text
    assert decode((ending + text).encode(codec))[0] == ending + text


@pytest.mark.parametrize("language", ("de", "fr", "ru", "zh", "ja", "th"))
@pytest.mark.parametrize("before", (0, 1, 100, 4000))
def test_utf8_with_a_broken_byte_stays_utf8(language: str, before: int) -> None:
    for broken in (b"\xff", b"\xe4", TEXTS["zh"].encode()[:2]):
        data = b"ships\n" * before + TEXTS[language].encode() + b" " + broken + b" " + TEXTS[language].encode()
        text, warnings = decode(data)
        assert text.count(TEXTS[language]) == 2
        assert warnings == ("1 place of the text is not valid utf-8 and was replaced.",)


def test_broken_byte_costs_only_itself_in_other_encodings() -> None:
    data = TEXTS["zh"].encode("gbk") * 3 + b"\xff\n" + TEXTS["zh"].encode("gbk") * 3
    text, warnings = decode(data)
    assert text.count(TEXTS["zh"]) == 6
    assert warnings == (
        "The text is not UTF-8; it was read as GBK.",
        "1 place of the text is not valid GBK and was replaced.",
    )


def test_late_or_long_lines_in_a_large_file_take_bounded_time() -> None:
    for line in (TEXTS["zh"].encode("gbk") * 40_000, b"x" * 4_000_000 + "ü".encode("cp1252"), b"\xff" * 1_000_000):
        assert decode(line)[0]


@pytest.mark.parametrize("name", ("photo.txt", "photo", "photo.md", "photo.csv"))
def test_binary_data_is_no_text_in_any_encoding(name: str) -> None:
    source = random.Random(30)
    noise = [source.randbytes(size) for size in (40, 100, 1000, 9000, 70_000)]
    packed = [zlib.compress(text.encode() * times) for text in TEXTS.values() for times in (1, 50)]
    numbers = [
        b"".join(n.to_bytes(width, order) for n in range(300)) for width in (2, 4) for order in ("little", "big")
    ]
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + noise[2]
    samples = [int(9000 * source.gauss(0, 1)).to_bytes(4, "little", signed=True)[:2] for _ in range(4000)]
    for data in (*noise, *packed, *numbers, png, b"".join(samples), b"\x7fELF\x02\x01\x01" + bytes(9), bytes(500)):
        assert not detect(data, name).startswith("text/"), (name, data[:20])
        refused(data, name, SourceErrorCode.UNSUPPORTED_FORMAT)


@pytest.mark.anyio
async def test_declared_encoding_of_an_upload_decides(unlimited: Extractor, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    for text, codec, declared in (
        ("Ты", "koi8-r", "text/plain; charset=koi8-r"),
        ("Ты", "cp1251", 'text/plain; charset="Windows-1251"'),
        ("çõê", "cp850", "text/plain;charset=cp850"),
        ("囍宴", "gbk", "text/plain; charset=GB2312"),
        ("“Öl”", "cp1252", "text/plain; charset=ISO-8859-1; format=flowed"),
    ):
        path.write_bytes(text.encode(codec))
        # The type is detected when the file arrives, stored, and declared to the reader.
        stored = detect(path.read_bytes()[:8192], path.name, declared)
        extraction = await unlimited.extract(document_at(path, content_type=stored))
        assert isinstance(extraction, Extraction)
        assert (extraction.text, extraction.warnings, extraction.content_type) == (text, (), stored)
        (in_a_wave,) = await unlimited.extract_wave([document_at(path, content_type=stored)])
        assert in_a_wave == extraction


@pytest.mark.parametrize("declared", ("x-nothing", "utf-8", "us-ascii", ""))
def test_wrong_or_unknown_declaration_leads_to_a_guess(declared: str) -> None:
    text, codec = (TEXTS["de"], "cp1252") if declared == "us-ascii" else (TEXTS["ru"], "cp1251")
    assert decode(text.encode(codec), declared)[0] == text


@pytest.mark.parametrize(("label", "text"), (("ISO-8859-15", "Preis 5 € für Œuvre"), ("windows-1251", "Кошка")))
def test_xml_is_read_in_the_encoding_that_it_declares(label: str, text: str) -> None:
    document = read(f'<?xml version="1.0" encoding="{label}"?>\n<a>{text}</a>'.encode(label), "a.xml")
    assert text in document.text
    assert document.warnings == ()


def test_other_text_formats_are_read_in_their_encodings() -> None:
    assert read(f"# {TEXTS['zh']}\n\nx".encode("gbk"), "a.md").blocks[0].headings == (TEXTS["zh"],)
    assert read(f"Имя;Город\n{TEXTS['ru']};x\n".encode("cp1251"), "a.csv").blocks[1].headings == ("Имя, Город",)
    assert TEXTS["ja"] in read(f'{{"a": "{TEXTS["ja"]}"}}'.encode("shift_jis"), "a.json").text
    assert TEXTS["ko"] in read(f"# {TEXTS['ko']}\nx = 1\n".encode("euc_kr"), "a.py").text


UNREADABLE, UNSUPPORTED = SourceErrorCode.DOCUMENT_UNREADABLE, SourceErrorCode.UNSUPPORTED_FORMAT
OVER_LIMIT = SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED


def test_gzip_expansion_is_limited() -> None:
    data = compress(random.Random(1).randbytes(3 * 1024**2).hex().encode())
    assert read(data, "a.txt.gz").text
    assert "more than 1 MB" in refused(data, "a.txt.gz", OVER_LIMIT, archive_bytes=1024**2)


@pytest.mark.parametrize(
    ("text", "filename"),
    (
        *((b"One.\nStill one.\n\nTwo.\n", name) for name in ("notes.txt", "README", "changelog.Debian")),
        (b"# Lamp\n\nIt is painted turquoise.\n", "NOTES.MD"),
        (b"name,colour\nlamp,turquoise\n", "lamps.csv"),
        (b'{"lamp": "turquoise"}\n{"lamp": "umber"}\n', "lamps.jsonl"),
    ),
)
def test_compressed_text_is_read_like_the_text_itself(text: bytes, filename: str) -> None:
    plain = read(text, filename)
    for packed in (compress(text), compress(text[:9]) + compress(text[9:])):
        document = read(packed, f"{filename}.gz")
        assert (document, lines(document)) == (plain, lines(plain))


def test_gzip_of_other_content_or_damaged_gzip_is_refused_with_a_reason() -> None:
    words = compress(b"words")
    for data, filename, code, reason in (
        (compress(b"a.txt" + bytes(507)), "a.tar.gz", UNSUPPORTED, "no text but application/octet-stream"),
        (compress(samples.make_pdf(["x"])), "a.txt.gz", UNSUPPORTED, "no text but application/pdf"),
        (compress(words), "a.txt.gz", UNSUPPORTED, "no text but application/gzip"),
        *((words[:-6], "a.md.gz", UNREADABLE, "expanded"), (words + b"more", "a.md.gz", UNREADABLE, "expanded")),
        (compress(bytes(30 * 1024**2)), "a.txt.gz", OVER_LIMIT, "200 times"),
    ):
        assert reason in refused(data, filename, code), (filename, reason)
