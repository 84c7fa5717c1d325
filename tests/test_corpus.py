"""The corpus is real, the same for the same seed, and keeps its word about each document."""

from pathlib import Path

import pypdfium2
import pytest

from tests.corpus import Made, Outcome, Prose, make_corpus, phrase_of


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    first, second, other = (make_corpus(tmp_path / name, 20, seed) for name, seed in [("a", 1), ("b", 1), ("c", 2)])
    assert first == second
    assert [made.phrase for made in first] == [made.phrase for made in other]
    assert _contents(tmp_path / "a") == _contents(tmp_path / "b") != _contents(tmp_path / "c")


def test_twenty_documents_have_every_outcome_and_format(tmp_path: Path) -> None:
    made = make_corpus(tmp_path, 20)
    assert {document.outcome for document in made} == set(Outcome)
    suffixes = {Path(document.path).suffix for document in made}
    assert suffixes == {".txt", ".md", ".html", ".pdf", ".docx", ".csv", ".json", ".py"}
    assert sorted(_contents(tmp_path)) == sorted(document.path for document in made)


def test_each_phrase_stands_in_one_document_only(tmp_path: Path) -> None:
    texts = [
        made for made in make_corpus(tmp_path, 60) if Path(made.path).suffix in {".txt", ".md", ".html"} and made.phrase
    ]
    for made in texts:
        holders = [other for other in texts if made.phrase in " ".join((tmp_path / other.path).read_text().split())]
        assert holders == [made]


def test_phrases_do_not_repeat() -> None:
    assert len({phrase_of(number) for number in range(1000)}) == 1000


def test_a_phrase_in_a_pdf_stands_on_its_page(tmp_path: Path) -> None:
    made = [document for document in make_corpus(tmp_path, 20) if document.page]
    assert made
    assert all(_pages_with_phrase(tmp_path, document) == [document.page] for document in made)


def _pages_with_phrase(folder: Path, made: Made) -> list[int]:
    with pypdfium2.PdfDocument(folder / made.path) as document:
        texts = [" ".join(page.get_textpage().get_text_bounded().split()) for page in document]
    return [number for number, text in enumerate(texts, start=1) if made.phrase in text]


def test_what_is_called_unreadable_is_unreadable(tmp_path: Path) -> None:
    cut = [
        made for made in make_corpus(tmp_path, 20) if made.path.endswith(".pdf") and "document_unreadable" in made.codes
    ]
    assert cut
    for made in cut:
        with pytest.raises(pypdfium2.PdfiumError):
            pypdfium2.PdfDocument(tmp_path / made.path)


def test_prose_differs_from_seed_to_seed() -> None:
    assert Prose(1).paragraph() == Prose(1).paragraph() != Prose(2).paragraph()
