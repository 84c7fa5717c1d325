"""Tests what texts are found by: the words that people type for what others have written."""

# ruff: noqa: RUF001 - letters of many scripts look alike

import pytest

from svc_daemon.core.text.places import PlaceFinder
from svc_daemon.core.text.queries import LITTLE, MAX_WORDS, parse_query, splits
from svc_daemon.core.text.terms import Alternative, QueryWord, index_terms, may_be_mistaken, suggest


def weigh(word: QueryWord, text: str, language: str = "en") -> float:
    """Return the weight of the best way in which the text has the word, or 0."""
    terms = index_terms(text, language)
    words, forms = f" {terms.words} ", terms.forms.split()
    return max(
        (
            way.weight
            for way in word.alternatives
            if (way.terms[0] in forms if way.in_forms else f" {' '.join(way.terms)} " in words)
        ),
        default=0.0,
    )


def finds(query: str, text: str, language: str = "en") -> bool:
    """Whether the text has every word of the query that decides."""
    words = [word for word in parse_query(query, (language,)).words if word.weight == 1]
    return bool(words) and all(weigh(word, text, language) >= 0.5 for word in words)


#: Queries, and texts that have what they mean.
FOUND = [
    # Marks, and letters without one.
    *(("strasse", "Die Straße nach Gießen"), ("STRASSE", "die straße"), ("Lodz", "Łódź i która"), ("ktora", "która")),
    *(("caffe", "Le caffè"), ("naif", "naïf"), ("Soren", "Søren læser på Ærø"), ("Aero", "Ærø"), ("thor", "Þór")),
    *(("Viet Nam", "Việt Nam"), ("da nang", "Đà Nẵng"), ("istanbul", "İSTANBUL"), ("ispanak", "ıspanak")),
    *(("елка", "ёлка"), ("λογος", "λόγος"), ("كتب", "كُتُب"), ("على", "علي"), ("مدرسه", "مدرسة"), ("שלום", "שָׁלוֹם")),
    *(("naïve", "naive"), ("cafe\N{COMBINING ACUTE ACCENT}", "café"), ("muenchen", "München"), ("München", "Muenchen")),
    # Compatibility characters, and those without a glyph.
    ("hitman", "Hitman™: the complete season"),
    ("find", "ﬁnd"),
    ("ABC", "ＡＢＣ"),
    ("kg", "㎏"),
    ("Gesamtkonzept", "Ge\xadsamt\xadkonzept"),
    ("zero width", "zero\u200bwidth"),
    ("zerowidth", "zero\u200bwidth"),
    ("fox", "\ufefff\u200dox\ufe0f"),
    ("123", "١٢٣"),
    ("256", "๒๕๖"),
    # Words joined by capitals and signs, apart, and joined.
    *(("user profile", "export function getUserProfile(key)"), ("getUserProfile", "getUserProfile()")),
    ("invoice parser", "class HTMLInvoiceParser {"),
    ("get user profile", "get_user_profile"),
    ("user-profile", "userProfile"),
    ("atomic_write_json", "Call atomic_write_json to store"),
    ("user profiles", "the user-profile"),
    ("userProfile", "a userprofile"),
    ("email", "an e-mail"),
    ("e-mail", "an email"),
    ("e mail", "the email"),
    ("e-mail", "an e mail"),
    ("e mail", "e-mails"),
    *(("email", "E\N{NON-BREAKING HYPHEN}Mail"), ("data base", "databases"), ("database", "a data-base")),
    *(("iphone", "an iPhone"), ("iPhone", "IPHONE"), ("github", "on GitHub"), ("PDFs", "pdfs"), ("kwh", "5 kWh")),
    ("O'Brien", "Mr O’Brien"),
    ("OBrien", "O'Brien"),
    ("école", "l'école"),
    ("foxes", "the fox's tail"),
    ("dont", "I don’t"),
    # Signs.
    ("C++ course", "The C++ course"),
    ("c++", "(C++), and"),
    ("C#", "C# is"),
    ("F#", "in F#."),
    (".NET", "The .NET runtime"),
    ("node.js", "use node.js or"),
    ("C++", "Ｃ＋＋"),
    ("US law", "U.S. law"),
    ("U.S.", "the US"),
    ("U.S.A.", "USA"),
    ("PhD", "Ph.D."),
    ("Ph.D.", "PhD"),
    ("login", "log-in"),
    ("set up", "setup"),
    ("UTF 8", "utf8"),
    ("H₂SO₄", "h2so4"),
    ("½", "1/2"),
    ("C#", "C#10"),
    ("R&D budget", "the R & D budget"),
    ("AT&T phone", "a phone of AT&T"),
    ("A/B test", "an A/B test"),
    ("R&D", "our R&D."),
    ("jane.doe@example.com", "to jane.doe@example.com."),
    ("report_final.pdf", "see report_final.pdf"),
    ("https://docs.example.org/v2/guide", "See https://docs.example.org/v2/guide?page=3"),
    # Numbers.
    ("version 1.0.21", "Version 1.0.21 fixes"),
    ("1.0.21", "v1.0.21"),
    ("v2.1", "v2.1,"),
    ("python 3.11", "Python 3.11."),
    ("2024-03-14", "on 2024-03-14."),
    ("14.3.2024", "am 14.3.2024"),
    ("€1,234.50", "for 1,234.50 EUR"),
    ("1234.50", "€1,234.50"),
    ("1.234,50", "1,234.50"),
    ("AB-1234-X", "part AB-1234-X"),
    ("ab1234x", "AB-1234-X"),
    ("§ 12", "§12"),
    ("§12", "§ 12 BGB"),
    ("3.4.1", "see 3.4.1."),
    ("RULE-A002", "see RULE-A002"),
    ("a002", "RULE-A002"),
    ("CVE-2024-1234", "CVE-2024-1234."),
    ("1234567", "1,234,567"),
    ("1234.50", "1 234,50 €"),
    ("1 234,50", "1,234.50"),
    ("1234567", "1_234_567"),
    ("1234.5", "١٬٢٣٤٫٥"),
    ("1234", "1,234.00"),
    ("2024-03-14", "14.3.2024"),
    ("14.03.2024", "2024-03-14"),
    ("20240314", "2024-03-14"),
    ("9783161484100", "ISBN 978-3-16-148410-0"),
    ("1234567", "1,234,567"),
    ("1,234,567", "1234567"),
    ("1 234 567", "1234567"),
    ("1234567", "1 234 567"),
    ("1.234.567", "1'234'567"),
    ("1234", "1,234"),
    ("1 234", "1234"),
    ("12,34,567", "1234567"),
    ("PEP 484", "pep-0484.rst"),
    ("pep 0484", "PEP 484"),
    ("PEP-8", "pep-0008.txt"),
    ("Aarhus", "Århus"),
    ("Gödel", "Kurt Goedel"),
    ("1.5 GB", "1.5GB"),
    ("1.5GB", "1.5 GB"),
    ("1.0.21", "tool-1.0.21-beta.tar.gz"),
    *(("color", "The colours of the hall"), ("neighbouring", "neighboring"), ("organised", "It is organized.")),
    *(("gray theater", "a grey theatre"), ("traveling", "travelling"), ("analyze", "analysed"), ("tires", "a tyre")),
    ("healthcare", "health-care"),
    ("health care", "healthcare"),
    ("XML parser", "XMLParser"),
    ("mysql", "MySQL"),
    ("MySQL", "mysql"),
    ("OAuth", "OAuth2"),
    ("データ", "ﾃﾞｰﾀ"),
    ("userid", "user_id"),
    ("PEP0484", "pep-0484.rst"),
    ("1000000", "1 000 000"),
    ("10 000", "10000"),
    ("007", "agent 7"),
    ("5kg", "5 kg"),
    ("5 kg", "5kg"),
    ("5kg", "5\N{NO-BREAK SPACE}kg"),
    ("20°C", "20 ℃"),
    ("20 °C", "20°C"),
    ("10 %", "10%"),
    ("10%", "10 %"),
    ("CO2", "3 t CO₂."),
    ("CO2", "CO 2"),
    ("CO 2", "CO2"),
    ("120 m2", "120 m²"),
    ("COVID-19", "covid19"),
    # Numbers in groups, codes and dates, however they are typed.
    *(("DE89370400440532013000", "IBAN: DE89 3704 0044 0532 0130 00."), ("4111111111111111", "4111 1111 1111 1111")),
    *(
        ("GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"),
        ("gb29 nwbk 6016 1331 9268 19", "GB29NWBK60161331926819"),
    ),
    *(("0301234567", "Tel. +49 30 1234567, Fax"), ("+49301234567", "(030) 123-4567"), ("030 1234567", "+49301234567")),
    *(("0171 2345678", "0171 / 234 56 78"), ("01712345678", "+49 (0)171 2345678"), ("(030) 123 45 67", "0301234567")),
    *(("5551239876", "call (555) 123-9876."), ("555.123.9876", "+1 555 123 9876"), ("0049 30 1234567", "030/1234567")),
    *(("DE123456789", "DE 123 456 789"), ("DE 123 456 789", "DE123456789"), ("re20240077", "RE-2024/0077")),
    *(("978-3161484100", "978-3-16-148410-0"), ("1234567890", "12/345/67890"), ("CHE123456789", "CHE-123.456.789")),
    *(("5.4.2024", "am 5. April 2024"), ("3. März 2024", "03.03.2024"), ("2024-03-05", "March 5, 2024")),
    *(("5th of March 2024", "2024-03-05"), ("7.6.2023", "on 7 June 2023"), ("1er mars 2024", "2024-03-01")),
    *(("06/07/2023", "2023-07-06"), ("06/07/2023", "2023-06-07"), ("12/25/2023", "25 December 2023")),
    *(("03.03.24", "am 3.3.2024"), ("2024-03-03", "vom 03.03.24"), ("31.12.99", "1999-12-31")),
    *(("5 March 2024", "5 de marzo de 2024"), ("05-Mar-2024", "05.03.2024"), ("2024-03-05", "2024年3月5日に")),
    *(("14-03-2024", "14 March 2024"), ("2024-03-14", "op 14-03-2024"), ("3/14/24", "March 14, 2024")),
    *(("14 March 2024", "due 14-Mar-24."), ("05SEP2021", "5 September 2021"), ("14-mar-98", "1998-03-14")),
    *(("1950-09-05", "05SEP1950"), ("14-MAR-2024", "14.3.2024"), ("1999-03-05", "05-Mar-99")),
    *(("14. 3. 2024", "dne 14.3.2024"), ("14.3.2024", "am 14. 3. 2024"), ("14 March 2024", "am 14.3. 2024")),
    *(("2450 Euro", "2.450,00 €"), ("90 EUR", "90 euros"), ("90 €", "EUR 90"), ("40 GBP", "£40")),
    # Common words that decide.
    ("vitamin A deficiency", "Vitamin A deficiency"),
    ("vitamin d", "vitamin D is"),
    ("IT department", "The IT department"),
    ("WHO guideline", "The WHO guideline"),
    ("to be or not to be", "To be, or not to be"),
    ("the who", "The Who"),
    ("plan B", "plan B"),
    # Scripts without spaces.
    ("雨", "今日は雨が降ります。"),
    ("更新", "データベースの更新手順です。"),
    ("설정", "결제설정을"),
    ("悬空", "五十条悬空引用"),
    ("itgc", "重跑gen-itgc后"),
    *(("ข้าวเช้า", "ฉันชอบกินข้าวเช้าทุกวัน"), ("ข่าว", "และอ่านข่าวตอนเย็น"), ("ทะเล", "เขาไปเที่ยวทะเลกับเพื่อน"), ("ガ", "ｶﾞ")),
    *(("ສະບາຍ", "ສະບາຍດີ"), ("ខ្មែរ", "ភាសាខ្មែរ"), ("မြန်မာ", "မြန်မာစာ"), ("नमस्ते", "नमस्ते दुनिया")),
]


@pytest.mark.parametrize(("query", "text"), FOUND)
def test_what_people_type_finds_what_others_have_written(query: str, text: str) -> None:
    assert finds(query, text)
    words = parse_query(query).words
    places = PlaceFinder(words).find(text, "en")
    for word, spans in zip(words, places, strict=True):
        assert bool(spans) == bool(weigh(word, text)), word.text
        assert all(0 <= start < end <= len(text) for start, end in spans)
        assert spans == sorted(spans)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        *(("Gärtnerstr. 14", "Gärtnerstraße 14"), ("gaertnerstrasse 14", "Gärtnerstr. 14")),
        *(("Kundennr. 12", "Kundennummer: 12"), ("Rechnungsnummer", "Rechnungsnr. 5"), ("Hauptstr.", "Hauptstrasse 3")),
    ],
)
def test_german_endings_that_are_written_short_are_found(query: str, text: str) -> None:
    assert finds(query, text, "de")
    assert all(weigh(word, text, "fr") for word in parse_query(query, ("de", "fr")).words)


#: Queries, and texts that don't have what they mean.
NOT_FOUND = [
    ("C++", "The C course. C, C."),
    ("C#", "C and C++"),
    ("C", "C++"),
    (".NET", "a fisher's net"),
    ("1.5GB", "1.5 MB"),
    ("15", "1.5"),
    *(("0301234567", "+49 30 1234568"), ("5.4.2024", "4. May 2024")),
    *(("DIN15", "DIN 1.5"), ("13/25/2023", "25.12.2023"), ("12345678", "row 1 2 3 4 5 6 7 8 9")),
    *(("14 March 2024", "A14-Mar-24"), ("14 March 2024", "14-Mar-24-b")),
    *(("14-03-24", "14 March 2024"), ("1.2.24", "1 February 2024"), ("5 dollar", "a $HOME")),
    *(("called", "caled"), ("filled", "filed"), ("size", "sise")),
    ("1.5", "15"),
    *(("version 1.0.21", "version 21.1.0, step 1, step 0, step 21"), ("python 3.11", "Python lesson 3, and 11 others")),
    *(("vitamin A deficiency", "Vitamin D deficiency. A lack of vitamin."), ("IT department", "the department, it is")),
    *(("WHO guideline", "a guideline for those who sleep"), ("ข่าว", "ข้าวเช้า"), ("fox", "box"), ("५", "6")),
]


@pytest.mark.parametrize(("query", "text"), NOT_FOUND)
def test_what_means_something_else_is_not_found(query: str, text: str) -> None:
    assert not finds(query, text)


#: A query, the text that is written just so, and one that only folds to it.
EXACT = [
    ("Straße", "Straße", "Strasse"),
    ("email", "email", "e-mail"),
    ("e-mail", "e-mail", "email"),
    ("net", "net", ".NET"),
    ("1234567", "1234567", "1,234,567"),
    ("pep 0484", "pep 0484", "pep 484"),
    ("résumé", "résumé", "resume"),
    ("resume", "resume", "résumé"),
    ("runs", "runs", "running"),
    ("1.0.21", "1.0.21", "1 0 21"),
    ("getUserProfile", "getUserProfile", "get user profile"),
    ("WHO sleep", "WHO", "who"),
]


@pytest.mark.parametrize(("query", "same", "other"), EXACT)
def test_what_is_written_exactly_so_weighs_more(query: str, same: str, other: str) -> None:
    word = next(word for word in parse_query(query).words if word.text not in ("sleep", "pep"))
    assert weigh(word, same) > weigh(word, other) > 0


def test_a_part_of_a_name_is_not_found_by_the_numbers_in_the_name() -> None:
    words = {word.text: word for word in parse_query("tool-1.0.21-beta").words}
    assert {name: weigh(word, "1.0.21") > 0 for name, word in words.items()} == {
        "tool": False,
        "1.0.21": True,
        "beta": False,
    }
    assert all(weigh(word, "tool-1.0.21-beta") == 1.5 for word in words.values())


def test_common_words_weigh_little_beside_others_and_are_never_dropped() -> None:
    weights = {
        word.text: word.weight for word in parse_query("what does the WHO say about US and us, a NICE plan B?").words
    }
    assert {word for word in weights if weights[word] == LITTLE} == {"what", "does", "the", "about", "and", "a"}
    queries = ("to be or not to be", "the", "IT", "AND")
    assert all(word.weight == 1 for query in queries for word in parse_query(query).words)
    assert [word.text for word in parse_query("cats AND dogs").words if word.weight == 1] == ["cats", "dogs"]
    assert [word.weight for word in parse_query("WHAT IS THE PLAN").words] == [LITTLE, LITTLE, LITTLE, 1]


def test_a_long_query_keeps_the_first_words_that_decide_and_counts_the_rest() -> None:
    parsed = parse_query("the " + " ".join(f"x{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(MAX_WORDS + 5)))
    assert (len(parsed.words), parsed.words_left_out) == (MAX_WORDS, 5)
    assert parse_query("fox " * 1000).words_left_out == 0


def test_quoted_phrases_are_the_terms_of_their_words_in_each_language() -> None:
    phrases = ((("run", "fox"), ("running", "foxes")), (("e", "mail"), ("email",)))
    assert parse_query('the "running foxes" of “e-mail” 5" wide').phrases == phrases
    assert parse_query('it\'s 5" by 7 and "').phrases == ()


def test_strings_in_code_and_in_pasted_lines_need_not_occur() -> None:
    code = ('log.info("sent")', 'name="sent"', '["sent"]', '{"state": "sent"}', 'File "a.py"\n  raise "sent"')
    assert [parse_query(text).phrases for text in code] == [()] * len(code)
    asked = ('"sent"', '("sent" or "kept")', 'state "sent", "kept"')
    assert [len(parse_query(text).phrases) for text in asked] == [1, 2, 2]


def test_a_joined_word_may_stand_as_two() -> None:
    ways = splits("databases")
    assert Alternative(("data", "base"), False, 0.9) in ways
    assert any(way.terms == ("e", "mail") for way in splits("email"))
    assert splits("fox") == splits("1.0.21") == []


@pytest.mark.parametrize(
    ("word", "texts", "suggested"),
    [
        ("polcy", ["police", "police, pole", "The policy."], "policy"),
        ("fox", ["box", "fog", "fog", "foxes foxes foxes"], "fog"),
        ("Strase", ["Straße"], "straße"),
        (
            "Betriebskosten",
            ["Betriebskostenvorauszahlung", "eine Betriebskostenabrechnung"],
            "betriebskostenabrechnung",
        ),
        ("Käsespätz", ["Käsespätzle mit Zwiebeln"], "käsespätzle"),
        ("fox", ["foxhound"], None),
        ("vacati", ["vacations", "vacation"], "vacation"),
        ("walrus", ["walrus", "fox"], None),
    ],
)
def test_the_nearest_and_then_the_most_frequent_word_is_suggested(
    word: str, texts: list[str], suggested: str | None
) -> None:
    assert suggest(word, texts) == suggested


@pytest.mark.parametrize(
    ("word", "may"), [("fox", True), ("2025", False), ("日本", False), ("tp", False), ("c++", False)]
)
def test_numbers_and_short_words_are_not_mistaken_for_others(word: str, *, may: bool) -> None:
    assert may_be_mistaken(word) is may
