"""The guess of a text's language, stems of words, and that words are found by them."""

# ruff: noqa: RUF001 - letters of many scripts look alike

import pytest

from svc_daemon.core.text.languages import common_in, guess_language
from svc_daemon.core.text.queries import parse_query
from svc_daemon.core.text.words import (
    stem_of,
    stems_of,
)
from tests.core.text.test_terms import finds, weigh

#: Texts and their languages.
LANGUAGES = [
    *(("en", "The agreement is renewed each year unless one of the parties ends it."), ("en", "Vacation policy")),
    *(("en", "Łódź is a city in Poland with a long history of textiles."), ("en", "import os\nfrom a import b")),
    *(("ar", "يجب على كل موظف تقديم طلب الإجازة قبل شهر من السفر"), ("", ""), ("", "1.0.21 + 3")),
    ("da", "Du skal søge om ferie mindst en måned før afrejse."),
    ("no", "Ansatte må søke om ferie minst en måned før."),
    ("de", "Der Vertrag verlängert sich um ein Jahr."),
    ("el", "Η εταιρεία ιδρύθηκε το 1998 και έχει 200 υπαλλήλους."),
    ("es", "Los empleados deben pedir vacaciones con un mes."),
    ("fi", "Yritys perustettiin ja sillä on työntekijää."),
    ("fr", "Les salariés demandent leurs congés un mois avant."),
    ("hu", "A szabadságot legalább egy hónappal kell kérni."),
    ("it", "I dipendenti devono chiedere le ferie un mese prima."),
    ("nl", "Het bedrijf werd opgericht en heeft nu 200."),
    ("pt", "Os funcionários devem pedir férias com um mês."),
    ("ro", "Angajații trebuie să ceară concediul cu o lună."),
    *(("ru", "Компания была основана в 1998 году."), ("sv", "Anställda måste ansöka om semester före avresan.")),
    *(("ta", "நிறுவனம் தொடங்கப்பட்டது மற்றும் இன்று உள்ளனர்."), ("tr", "Çalışanlar izin için en az bir ay önce başvurmalıdır.")),
    # Languages without stems, some of which share words with those above.
    *(("", "Firma została założona w 1998 roku i ma dziś 200 pracowników."), ("", "今日は雨が降ります。")),
    ("", "Společnost byla založena v roce 1998 a dnes má zaměstnance."),
    ("", "Фирмата е основана през 1998 г. и има 200."),
    ("", "Компанію було засновано, і сьогодні в ній працює 200."),
    ("", "شرکت در سال ۱۹۹۸ تأسیس شد و امروز کارمند دارد"),
]


@pytest.mark.parametrize(("language", "text"), LANGUAGES)
def test_a_language_is_guessed_from_its_common_words(language: str, text: str) -> None:
    assert guess_language(text) == language


#: Words of a language, and other forms of them.
STEMS = [
    ("en", "contracts", "contract"),
    ("de", "Verträgen", "Vertrag"),
    ("fr", "élevées", "élevé"),
    ("es", "gatos", "gato"),
    ("ru", "книгами", "книга"),
    ("fi", "taloissa", "talo"),
    ("tr", "evler", "ev"),
    ("nl", "lichamelijke", "lichamelijk"),
    ("pt", "meninos", "menino"),
    ("it", "gatti", "gatto"),
    ("sv", "jaktkarlarne", "jaktkarl"),
    ("hu", "házak", "ház"),
]


@pytest.mark.parametrize(("language", "word", "other"), STEMS)
def test_forms_of_a_word_are_found_in_texts_of_its_language(language: str, word: str, other: str) -> None:
    for query, text in ((word, other), (other, word)):
        assert finds(query, text, language)
        (asked,) = parse_query(query, ("en", language)).words
        assert weigh(asked, text, language) >= 1
        # Among texts of another language it is found as written.
        assert weigh(asked, query, "") >= 1


SAME = [
    *("employee employees", "policy policies", "day days", "work working worked", "approve approves", "time times"),
    *("Vacation vacation", "wrote written", "writing author", "paid pays", "children Kids", "used use"),
    *("colour colors", "licence license"),
]
OTHER = ["day date", "use us", "part partner", "2 20", "bus business"]


def test_forms_of_a_word_have_one_stem_and_other_words_have_others() -> None:
    for forms in SAME:
        assert len(set(map(stem_of, forms.split()))) == 1, forms
    for words in OTHER:
        assert len(set(map(stem_of, words.split()))) == 2, words


def test_stop_words_are_left_out_of_a_query() -> None:
    assert stems_of("What is the boat's tide?") == {"boat", "tid"}
    assert len(stems_of(" ".join(f"w{number}" for number in range(500)))) == 500


@pytest.mark.parametrize(
    ("question", "common"),
    [
        ("Preis der Pumpe P-200", {"der"}),
        ("Total TTC de la facture F-31", {"de", "la"}),
        ("What does la Fenice cost?", set()),
        ("pump P-200 price", set()),
        ("Wann beginnt das Mietverhältnis?", {"wann", "das"}),
        ("Combien coûte le loyer ?", {"combien", "coûte", "le"}),
        ("Ile kosztuje wynajem na miesiąc?", {"ile", "kosztuje", "na"}),
    ],
)
def test_words_that_say_nothing_are_known_in_a_question_too_short_to_show_its_language(
    question: str, common: set[str]
) -> None:
    assert common_in(question) == common


@pytest.mark.parametrize(
    ("question", "languages", "deciding"),
    [
        ("Wann beginnt das Mietverhältnis?", ("de", "pt"), "beginnt mietverhältnis"),
        ("Was kostet der Häcksler?", ("de",), "häcksler"),
        ("Kosten der Wartung", ("de",), "kosten wartung"),
        ("Combien coûte le loyer ?", ("fr",), "loyer"),
        ("¿Cuándo es la próxima reunión?", ("es",), "próxima reunión"),
        ("Ile książek można wypożyczyć?", (), "książek wypożyczyć"),
        ("Когда заключён договор?", ("ru",), "заключён договор"),
        ("Πότε λήγει η μίσθωση;", ("el",), "λήγει μίσθωση"),
        ("מתי מתחילה תקופת השכירות?", (), "מתחילה תקופת השכירות"),
        ("議長は誰ですか", (), "議長"),
        ("解除合同需要提前多久通知？", (), "解除 除合 合同 提前 通知"),
        ("What is the fee of the hall?", ("de",), "fee hall"),
    ],
)
def test_words_that_only_ask_do_not_decide_what_a_question_finds(
    question: str, languages: tuple[str, ...], deciding: str
) -> None:
    assert [word.text for word in parse_query(question, languages).words if word.weight == 1] == deciding.split()
