"""The formats of documents that can be read, with their extensions and media types."""

from collections.abc import Mapping
from dataclasses import dataclass

PLAIN = "text/plain"
GZIP = "application/gzip"
MAN_PAGE = "text/troff"
CALENDAR, CONTACTS = "text/calendar", "text/vcard"
MAIL, MAILBOX = "message/rfc822", "application/mbox"

#: The package extra that recognises text in pictures.
OCR = "ocr"

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
EXCEL, POWERPOINT = "application/vnd.ms-excel", "application/vnd.ms-powerpoint"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_DOCX = f"{_OPEN_XML}.wordprocessingml.document"
_PPTX = f"{_OPEN_XML}.presentationml.presentation"
_ODF_KINDS = {"odt": "text", "ods": "spreadsheet", "odp": "presentation", "odg": "graphics", "odf": "formula"}
_ODF_TEMPLATES = {"ott": "text", "ots": "spreadsheet", "otp": "presentation", "otg": "graphics"}
_ODF_FLAT = {"fodt": "text", "fods": "spreadsheet", "fodp": "presentation", "fodg": "graphics"}
_XLSX = f"{_OPEN_XML}.spreadsheetml.sheet"
#: Extensions of text formats that may be compressed with gzip.
_COMPRESSED = (
    *("txt.gz", "text.gz", "log.gz", "rst.gz", "adoc.gz", "org.gz", "tex.gz", "md.gz", "markdown.gz", "mdx.gz"),
    *("man.gz", *(f"{section}.gz" for section in range(1, 9))),
    *("csv.gz", "tsv.gz", "json.gz", "ndjson.gz", "jsonl.gz", "html.gz", "htm.gz"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormat:
    """A document format that can be read."""

    #: Short name of the format, which also selects the reader.
    key: str
    #: Name of the format in messages.
    name: str
    #: Maps file name extensions, without the first dot, to media types.
    types: Mapping[str, str]
    #: The package extra that must be installed to read the format, or None.
    extra: str | None = None


_ODF_TYPES = {
    **{extension: f"{_OPEN_DOCUMENT}.{kind}" for extension, kind in _ODF_KINDS.items()},
    **{extension: f"{_OPEN_DOCUMENT}.{kind}-template" for extension, kind in _ODF_TEMPLATES.items()},
    **{extension: f"{_OPEN_DOCUMENT}.{kind}-flat-xml" for extension, kind in _ODF_FLAT.items()},
    "odm": f"{_OPEN_DOCUMENT}.text-master",
    "oth": f"{_OPEN_DOCUMENT}.text-web",
}

#: Every format that can be read, in the order shown to clients.
FORMATS = (
    DocumentFormat(key="text", name="Plain text", types=dict.fromkeys(("txt", "text", "log"), PLAIN)),
    DocumentFormat(key="markdown", name="Markdown", types=dict.fromkeys(("md", "markdown", "mdx"), "text/markdown")),
    DocumentFormat(key="rst", name="reStructuredText", types=dict.fromkeys(("rst", "rest"), "text/x-rst")),
    DocumentFormat(key="asciidoc", name="AsciiDoc", types=dict.fromkeys(("adoc", "asciidoc"), "text/x-asciidoc")),
    DocumentFormat(key="org", name="Org", types={"org": "text/x-org"}),
    DocumentFormat(key="latex", name="LaTeX", types=dict.fromkeys(("tex", "ltx"), "text/x-tex")),
    DocumentFormat(key="man", name="Man pages", types=dict.fromkeys(("man", "mdoc", *"12345678"), MAN_PAGE)),
    DocumentFormat(
        key="html", name="HTML", types={"html": "text/html", "htm": "text/html", "xhtml": "application/xhtml+xml"}
    ),
    DocumentFormat(key="pdf", name="PDF", types={"pdf": "application/pdf"}),
    DocumentFormat(
        key="docx",
        name="Word",
        types={
            "docx": _DOCX,
            "dotx": f"{_OPEN_XML}.wordprocessingml.template",
            "docm": "application/vnd.ms-word.document.macroenabled.12",
            "dotm": "application/vnd.ms-word.template.macroenabled.12",
        },
    ),
    DocumentFormat(
        key="pptx",
        name="PowerPoint",
        types={
            "pptx": _PPTX,
            "ppsx": f"{_OPEN_XML}.presentationml.slideshow",
            "potx": f"{_OPEN_XML}.presentationml.template",
            "pptm": f"{POWERPOINT}.presentation.macroenabled.12",
            "ppsm": f"{POWERPOINT}.slideshow.macroenabled.12",
            "potm": f"{POWERPOINT}.template.macroenabled.12",
        },
    ),
    DocumentFormat(
        key="xlsx",
        name="Excel",
        types={
            "xlsx": _XLSX,
            "xltx": f"{_OPEN_XML}.spreadsheetml.template",
            "xlsm": f"{EXCEL}.sheet.macroenabled.12",
            "xltm": f"{EXCEL}.template.macroenabled.12",
            "xlam": f"{EXCEL}.addin.macroenabled.12",
        },
    ),
    DocumentFormat(
        key="sheets",
        name="Other spreadsheets",
        types={"xls": EXCEL, "xlt": EXCEL, "xlsb": f"{EXCEL}.sheet.binary.macroenabled.12"},
    ),
    DocumentFormat(key="opendocument", name="OpenDocument", types=_ODF_TYPES),
    DocumentFormat(key="rtf", name="RTF", types={"rtf": "application/rtf"}),
    DocumentFormat(key="csv", name="CSV", types={"csv": "text/csv", "tsv": "text/tab-separated-values"}),
    DocumentFormat(
        key="json",
        name="JSON",
        types={"json": "application/json", "ndjson": "application/x-ndjson", "jsonl": "application/x-ndjson"},
    ),
    DocumentFormat(key="notebook", name="Jupyter notebook", types={"ipynb": "application/x-ipynb+json"}),
    DocumentFormat(key="mail", name="E-mail", types=dict.fromkeys(("eml", "emlx", "mht", "mhtml"), MAIL)),
    DocumentFormat(key="mailbox", name="Mailbox", types={"mbox": MAILBOX}),
    DocumentFormat(
        key="calendar",
        name="Calendars and contacts",
        types={"ics": CALENDAR, "ical": CALENDAR, "vcf": CONTACTS, "vcard": CONTACTS},
    ),
    DocumentFormat(key="evernote", name="Evernote", types={"enex": "application/enex+xml"}),
    DocumentFormat(key="epub", name="EPUB", types={"epub": "application/epub+zip"}),
    DocumentFormat(key="gzip", name="Compressed text", types=dict.fromkeys(_COMPRESSED, GZIP)),
    DocumentFormat(
        key="code",
        name="Source code",
        types={
            "py": "text/x-python",
            "pyi": "text/x-python",
            "js": "text/javascript",
            "mjs": "text/javascript",
            "cjs": "text/javascript",
            "jsx": "text/javascript",
            "ts": "text/x-typescript",
            "tsx": "text/x-typescript",
            "vue": "text/x-vue",
            "svelte": "text/x-svelte",
            "c": "text/x-c",
            "h": "text/x-c",
            "cc": "text/x-c++",
            "cpp": "text/x-c++",
            "hpp": "text/x-c++",
            "cs": "text/x-csharp",
            "go": "text/x-go",
            "rs": "text/x-rust",
            "java": "text/x-java",
            "kt": "text/x-kotlin",
            "scala": "text/x-scala",
            "swift": "text/x-swift",
            "rb": "text/x-ruby",
            "php": "text/x-php",
            "pl": "text/x-perl",
            "lua": "text/x-lua",
            "r": "text/x-r",
            "jl": "text/x-julia",
            "ex": "text/x-elixir",
            "erl": "text/x-erlang",
            "hs": "text/x-haskell",
            "clj": "text/x-clojure",
            "dart": "text/x-dart",
            "sh": "text/x-shellscript",
            "bash": "text/x-shellscript",
            "zsh": "text/x-shellscript",
            "fish": "text/x-shellscript",
            "ps1": "text/x-powershell",
            "bat": "text/x-batch",
            "sql": "text/x-sql",
            "css": "text/css",
            "scss": "text/x-scss",
            "less": "text/x-less",
            "xml": "text/xml",
            "svg": "image/svg+xml",
            "yaml": "text/x-yaml",
            "yml": "text/x-yaml",
            "toml": "text/x-toml",
            "ini": "text/x-ini",
            "cfg": "text/x-ini",
            "conf": "text/x-ini",
            "properties": "text/x-ini",
            "tf": "text/x-terraform",
            "proto": "text/x-protobuf",
            "graphql": "text/x-graphql",
            "cmake": "text/x-cmake",
            "mk": "text/x-makefile",
            "dockerfile": "text/x-dockerfile",
            "diff": "text/x-diff",
            "patch": "text/x-diff",
        },
    ),
    DocumentFormat(key="msg", name="Outlook", types={"msg": "application/vnd.ms-outlook"}),
    DocumentFormat(key="doc", name="Word to 2003", types=dict.fromkeys(("doc", "dot"), "application/msword")),
    DocumentFormat(key="ppt", name="PowerPoint to 2003", types=dict.fromkeys(("ppt", "pps", "pot"), POWERPOINT)),
    DocumentFormat(
        key="picture",
        name="Picture",
        types={
            "png": "image/png",
            **dict.fromkeys(("jpg", "jpeg"), "image/jpeg"),
            **dict.fromkeys(("tif", "tiff"), "image/tiff"),
            "webp": "image/webp",
        },
        extra=OCR,
    ),
)
