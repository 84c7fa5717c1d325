"""Word files are read alike in every variant, spelling and order of their parts."""

from tests.extract.office_files import paragraph, word_parts, zipped
from tests.extract.readings import read


def texts(data: bytes, filename: str = "a.docx") -> list[str]:
    return [block.text for block in read(data, filename).blocks]


def flat(parts: dict[str, bytes]) -> bytes:
    each = "".join(
        f'<pkg:part pkg:name="/{name}"><pkg:xmlData>{xml.decode().rpartition("?>")[2]}</pkg:xmlData></pkg:part>'
        for name, xml in parts.items()
        if not name.startswith("[")
    )
    main = 'pkg:contentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"'
    each = each.replace('pkg:name="/word/document.xml"', f'pkg:name="/word/document.xml" {main}')
    return (
        f'<?xml version="1.0"?>'
        f'<pkg:package xmlns:pkg="http://schemas.microsoft.com/office/2006/xmlPackage">{each}</pkg:package>'
    ).encode()


STRICT = {
    b"http://schemas.openxmlformats.org/wordprocessingml/2006/": b"http://purl.oclc.org/ooxml/wordprocessingml/",
    b"http://schemas.openxmlformats.org/officeDocument/2006/": b"http://purl.oclc.org/ooxml/officeDocument/",
}


def strict(content: bytes) -> bytes:
    for usual, other in STRICT.items():
        content = content.replace(usual, other)
    return content


def test_variants_and_layouts_of_the_file_are_read_alike() -> None:
    parts = word_parts(paragraph("Title", '<w:pStyle w:val="H1"/>') + paragraph("The umber quay."))
    kinds = {"docm": "document.macroEnabled", "dotm": "template.macroEnabledTemplate"}
    types = {kind: f"application/vnd.ms-word.{name}.main".encode() for kind, name in kinds.items()}
    types["dotx"] = b"application/vnd.openxmlformats-officedocument.wordprocessingml.template.main"
    usual = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main"
    files = {
        "strict.docx": zipped({name: strict(content) for name, content in parts.items()}),
        "back.docx": zipped({name.replace("/", "\\"): content for name, content in parts.items()}),
        "loud.docx": zipped({name.upper(): content for name, content in parts.items()}),
        "last.docx": zipped(dict(reversed(parts.items()))),
        "rooted.docx": zipped({f"/{name}": content for name, content in parts.items()}),
        "wide.docx": zipped(
            {
                **parts,
                "word/document.xml": parts["word/document.xml"].replace(b"UTF-8", b"UTF-16").decode().encode("utf-16"),
            }
        ),
        "flat.xml": flat(parts),
        **{
            f"a.{kind}": zipped({name: content.replace(usual, type_) for name, content in parts.items()})
            for kind, type_ in types.items()
        },
    }
    for name, data in files.items():
        assert texts(data, name) == ["Title", "The umber quay."], name
        assert texts(data, "without-extension") == ["Title", "The umber quay."], name


def test_picture_that_compresses_well_is_not_counted() -> None:
    parts = word_parts(paragraph("The umber quay."))
    assert texts(zipped({**parts, "word/media/i.bmp": bytes(30 * 1024**2)})) == ["The umber quay."]
