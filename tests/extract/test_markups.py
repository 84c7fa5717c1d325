"""Headings, items and code of the languages of documentation are such, with their lines; comments are hidden."""

import re
from gzip import compress

import pytest

from svc_daemon.core.text.media_types import detect
from tests.extract.readings import lines, read, shape

RST = """\
.. A comment
   with # two lines

=====
Title
=====

Intro `code`.

First part
----------

- one
  more
- two

Run this::

    # no heading
    run

    more

.. code-block:: sh
   :caption: x

   ls

.. note:: Seen note.

Deep
~~~~

==== ====
a    b
==== ====

Second part
-----------
>>> 1 + 1
2
"""

ASCIIDOC = """\
= Title
:toc: left

// A comment
Intro.

== First part

* one
* two

////
== no heading
////

[source,sh]
----
== no heading
----

|===
|a |b
|===

=== Deep [[anchor]]

Text.

Second part
-----------

Text ==
"""

ORG = """\
#+TITLE: Title
# A comment
Intro.

* DONE [#A] First part :tag:
:PROPERTIES:
:ID: x
:END:
- one
- two

#+BEGIN_SRC sh
* no heading
#+END_SRC

** Deep
| a | b |

#+begin_comment
hidden words
#+end_comment
* Second *part*
Text.
"""

LATEX = r"""\documentclass{article}
\title{The \emph{Title}}
\begin{document}
\maketitle
% A comment
\section{First part}\label{a}
Fu\ss g\"anger, d\'ej\`a vu, 50\% % of it
\begin{itemize}
\item one
\item two
\end{itemize}
\begin{verbatim}
\section{no heading} % kept
\end{verbatim}
\subsection*{Deep
 words}
Text.
\section[short]{Second \& part}
Text.
\end{document}
unseen
"""

MAN = r""".\" A comment
.TH SVC 1 "2026" "x"
.SH NAME
svc\-daemon \- keeps \fBfiles\fR
.SH "FIRST PART"
.TP
.B \-\-all
Sends all.
.PP
Text with
.BR svc (1)
again.
.nf
  $ svc up
.fi
.SS Deep
Text.
.SH
SECOND PART
Text \(em more.
"""

MDOC = r""".Dd June 1, 2026
.Dt SVC 1
.Sh NAME
.Nm svc
.Nd keeps files
.Sh SYNOPSIS
.Nm
.Op Fl a
.Ar file
.Bl -tag
.It Fl v
Is loud.
.El
"""


def headings(data: str, filename: str) -> list[tuple[tuple[str, ...], int | None]]:
    blocks = read(data.encode(), filename).blocks
    return [(block.headings, block.line_start) for block in blocks if block.kind == "heading"]


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    (
        (
            RST,
            "a.rst",
            [("Title", 4), ("Title/First part", 10), ("Title/First part/Deep", 31), ("Title/Second part", 38)],
        ),
        (
            ASCIIDOC,
            "a.adoc",
            [("Title", 1), ("Title/First part", 7), ("Title/First part/Deep", 25), ("Title/Second part", 29)],
        ),
        (ORG, "a.org", [("First part", 5), ("First part/Deep", 16), ("Second part", 22)]),
        (LATEX, "a.tex", [("First part", 6), ("First part/Deep words", 15), ("Second & part", 18)]),
        (MAN, "a.1", [("NAME", 3), ("FIRST PART", 5), ("FIRST PART/Deep", 16), ("SECOND PART", 18)]),
        (MDOC, "a.mdoc", [("NAME", 3), ("SYNOPSIS", 6)]),
    ),
)
def test_headings_have_their_levels_and_lines(data: str, name: str, expected: list[tuple[str, int]]) -> None:
    assert headings(data, name) == [(tuple(path.split("/")), line) for path, line in expected]


@pytest.mark.parametrize(
    ("data", "name", "kinds"),
    (
        (RST, "a.rst", {"item": ["- one\n  more", "- two"], "code": [">>> 1 + 1\n2"]}),
        (RST, "a.rst", {"code": ["    # no heading\n    run\n\n    more"]}),
        (ASCIIDOC, "a.adoc", {"item": ["* one", "* two"], "row": ["|a |b"], "code": ["----\n== no heading\n----"]}),
        (ORG, "a.org", {"item": ["- one", "- two"], "row": ["| a | b |"]}),
        (ORG, "a.org", {"code": ["#+BEGIN_SRC sh\n* no heading\n#+END_SRC"]}),
        (LATEX, "a.tex", {"item": ["\\item one"], "code": ["\\section{no heading} % kept"]}),
        (
            MAN,
            "a.1",
            {"item": ["--all\nSends all."], "code": ["  $ svc up"], "paragraph": ["svc-daemon - keeps files"]},
        ),
        (MDOC, "a.mdoc", {"item": ["-v\nIs loud."], "paragraph": ["svc\n- keeps files", "svc\n[-a]\nfile"]}),
    ),
)
def test_items_rows_and_code_are_such(data: str, name: str, kinds: dict[str, list[str]]) -> None:
    blocks = shape(read(data.encode(), name))
    for kind, texts in kinds.items():
        for text in texts:
            assert any(each == kind and text in block.strip("\n") for each, block, _ in blocks), (text, blocks)


@pytest.mark.parametrize(
    ("data", "name", "hidden"),
    (
        (RST, "a.rst", [(".. A comment with # two lines", 1)]),
        (ASCIIDOC, "a.adoc", [("// A comment", 4), ("//// == no heading ////", 12)]),
        (ORG, "a.org", [("# A comment", 2), ("#+begin_comment hidden words #+end_comment", 19)]),
        (LATEX, "a.tex", [("% A comment", 5), ("% of it", 7), ("\\end{document} unseen", 20)]),
        (MAN, "a.1", [('\\" A comment', 1)]),
    ),
)
def test_comments_are_hidden_with_their_lines(data: str, name: str, hidden: list[tuple[str, int]]) -> None:
    document = read(data.encode(), name)
    assert [(each.text, each.line) for each in document.hidden] == hidden
    assert "A comment" not in document.text
    assert len(document.text.split("\n")) == len(data.split("\n"))


def test_titles_are_kept() -> None:
    files = ((RST, "rst"), (ASCIIDOC, "adoc"), (ORG, "org"), (LATEX, "tex"), (MAN, "1"), (MDOC, "man"))
    titles = [read(data.encode(), f"a.{extension}").title for data, extension in files]
    assert titles == ["Title", "Title", "Title", "The Title", "SVC(1)", "SVC(1)"]


def test_letters_of_latex_and_man_pages_are_read() -> None:
    assert "Fußgänger, déjà vu, 50%" in read(LATEX.encode(), "a.tex").text
    document = read(MAN.encode(), "svc.1")
    assert "Text with\nsvc(1)\nagain." in document.text
    assert "Text — more." in document.text


@pytest.mark.parametrize(
    ("definition", "hidden"),
    (
        (".am URL\n.  ad l\n.  .", ".am URL . ad l . ."),
        (".de1 BL bL\nLoud.\n.bL", ".de1 BL bL Loud. .bL"),
        (".ig\nLoud.\n.. Ends here.", ".ig Loud. .. Ends here."),
        (".ig ++\nLoud.\n..\n.++", ".ig ++ Loud. .. .++"),
        (".de URL\n. br", ".de URL"),
    ),
)
def test_a_definition_of_a_man_page_hides_nothing_after_its_end(definition: str, hidden: str) -> None:
    document = read(f".TH X 1\n{definition}\n.SH NAME\nThe knob is blue.\n".encode(), "x.1")
    assert document.text.strip("\n") == "NAME\nThe knob is blue."
    assert "Loud" not in document.text
    assert [each.text for each in document.hidden] == [hidden]


@pytest.mark.parametrize(
    ("line", "shown"),
    (
        (".Op Fl B Ar bind_interface", "[-B bind_interface]"),
        (".Op Fl D Oo Ar host : Oc Ns Ar port", "[-D [host:]port]"),
        (".Oo Op Fl a Oc Fl I Ar pkcs11", "[[-a] -I pkcs11]"),
        (".Fl R | L , Fl Fl Ar", "-R | -L, --file ..."),
        (".Pq see Xr ssh 1 .", "(see ssh(1))."),
        (".Dq Ar a ( b c ,", "“a (b c”,"),
        (".Dq .", "“.”"),
        ('.Fn open "char *path" "int mode" ;', "open(char *path, int mode);"),
        (".Fo open", "open("),
        (".In stdio.h", "<stdio.h>"),
        ('.Ic now Ns n Ap s "Ar" Pf x Ar y', "nown's Ar xy"),
        (".An -nosplit", ""),
        (".%T The Fl Book", "The Fl Book"),
        (".Nm", "knob"),
        (".Ex -std", "The knob utility exits 0 on success, and >0 if an error occurs."),
        (".Bx 4.3 and Ux", "4.3BSD and UNIX"),
        (".Sm off\n.No a Oo : Oc Pa b\n.Sm on\n.No a b", "a[:]b\n\na b"),
    ),
)
def test_macros_within_a_line_of_mdoc_are_read(line: str, shown: str) -> None:
    document = read(f".Dd June 1, 2026\n.Dt KNOB 1\n.Sh NAME\n.Nm knob\n.Sh USE\n{line}\n".encode(), "knob.1")
    assert document.text.partition("USE")[2].strip("\n") == shown


@pytest.mark.parametrize(
    ("lines", "shown"),
    (
        ('.ie n .IP """size"" (a)" 4\n.el .IP "``size\'\' (a)" 4\nOf it.', '"size" (a)\n\nOf it.'),
        (".ie t .B black\n.el .B bold\nword", "bold\nword"),
        (".if !'po4a'hide' .BR \\-d \", \" \\-\\-debug", "-d, --debug"),
        (".if 'a'hide' .B no\n.if \\n(.g .if n .B yes", "yes"),
        (".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\nDon\\*(Aqt", "Don't"),
        (".ds VV 7.1\nknob\\*(VV, \\*[VV], \\*(lqb\\*(rq, \\*(ZZ", "knob7.1, 7.1, “b”,"),
        (r"n\(~ao, a\(,c\(~ao, \(/l\(oa\[u00E9], \[uD800]\(^6", "não, ação, łåé,"),
        (".B No Fl 7", "No Fl 7"),
        (
            '.BI "int pull(long " rope \\\n", int " men );\nIt \\\npulls.\\\\\nOn.',
            "int pull(long rope, int men);\n\nIt pulls.\\\n\nOn.",
        ),
        ('.URL "https://a.example/" "The Site" "."\n.MTO b@a.example', "The Site <https://a.example/>.\n<b@a.example>"),
        (".TS\nallbox tab(:);\nlB lB.\nT{\nName\nT}:T{\nUse\nT}\n.T&\nl l.\na:b\n.TE\nT{", "Name\n:\nUse\n\na:b\n\nT{"),
    ),
)
def test_conditions_strings_letters_and_tables_of_man_pages_are_read(lines: str, shown: str) -> None:
    document = read(f".TH KNOB 1\n.SH USE\n{lines}\n".encode(), "knob.1")
    assert re.sub(r"\n{2,}", "\n\n", document.text.partition("USE")[2]).strip("\n ") == shown


def test_notes_of_latex_stand_apart_from_words_and_what_is_switched_off_is_hidden() -> None:
    document = read(b"The dock\\footnote{Built 1900.} is long.\n\\iffalse\nnever\n\\fi\nend\n", "a.tex")
    assert document.text.split() == ["The", "dock", "Built", "1900.", "is", "long.", "end"]
    assert [each.text for each in document.hidden] == ["\\iffalse never \\fi"]


def test_only_a_file_with_macros_is_a_man_page() -> None:
    log = read(b"2026-01-01 start\n\n.hidden file read\n", "app.log.1")
    assert [(kind, text) for kind, text, _ in shape(log)] == [
        *(("paragraph", "2026-01-01 start"), ("paragraph", ".hidden file read")),
    ]
    assert detect(MAN.encode(), "page") == detect(MDOC.encode(), "page") == "text/troff"
    assert detect(b".hidden\n", "page") == "text/plain"
    preamble = b".de Vb \\\" Begins code\n.ft CW\n..\n.if \\n(.H>23 .if \\n(.V>19 \\\n\\{\\\n'br\\}\n"
    assert detect(preamble + b".TH KNOB 3pm\n", "Knob.3pm") == "text/troff"
    assert detect(preamble + b"It is.\n.TH KNOB 3pm\n", "Knob.3pm") == "text/plain"


@pytest.mark.parametrize(
    ("data", "name"),
    ((RST, "a.rst"), (ASCIIDOC, "a.adoc"), (ORG, "a.org"), (LATEX, "a.tex"), (MAN, "a.1"), (MAN, "a.3pm")),
)
def test_compressed_documentation_is_read_like_itself(data: str, name: str) -> None:
    plain = read(data.encode(), name)
    packed = read(compress(data.encode()), f"{name}.gz")
    assert (packed, lines(packed)) == (plain, lines(plain))


@pytest.mark.parametrize("name", ("a.rst", "a.adoc", "a.org", "a.tex", "a.1", "a.md", "a.csv"))
@pytest.mark.parametrize(
    "text",
    (
        *("", "\n\n", "....", "====\n====\n", "--\n", "*\n**\n", ".. \n", "::\n\n  x", "\\section{open\n"),
        *("\\begin{verbatim}\nx", "----\nopen", "#+begin_src\nopen", ".SH", ".TH\n.SH\n", "|===\n", "[[x]]"),
        "\\item",
        ".TP",
        "a\n=\n",
        "=\n",
        "%\n%",
        ":x:\n",
        "////\nopen",
        "Title\n=====",
        ".Nm\n.Sh \n.It\n",
        ".TH {a 1",
        # Searching for the end of each of these would take minutes.
        "\\f[" * 50_000,
    ),
)
def test_odd_markup_ends_with_a_document(name: str, text: str) -> None:
    read(f"{text}".encode(), name)
    read(f".SH A\n{text}\nWords at the end {text} of it\n".encode(), name)
