"""Estimates how common English words are, for teams with too few texts to count them.

A word of the first list occurs in about every 4th passage of a hundred words, a word of the second list in every 16th,
and a word of the third list in every 64th. All other words count as rare, including words of other languages.

Passages: the pieces of sources that an answer may be based on, and how much of a question they cover.

A few passages don't show how rare a word is in general. So the weight of a word also depends on how common it is in
English (see `common_words`). A sentence covers the words of the question that it contains, and those in the title and
headings above it.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from svc_daemon.core.search.ranking import coverage
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.sentences import Span, sentences_of
from svc_daemon.core.text.words import STOP_WORDS, stem_of, words_of

#: Words that occur in texts on any subject, and verbs with little meaning by themselves.
_ANYWHERE = (
    "able actually add again allow already always another anybody anyone anything appear ask away back become begin "
    "best better big bring call case certain change come contain day different does else end enough even ever "
    "everybody everyone everything exact example expect fact far few find first five four full general give go good "
    "great hand happen hear help high hold idea important include instead item keep kind know large last leave left "
    "less level like line list little live long look lot low main make matter meet much name near need never new next "
    "nobody none nothing now number often old one open order part people perhaps person place point possible provide "
    "put question quite rather reach really reason receive result right run same say second see seem send set several "
    "shall short show side simple single small somebody someone something sometimes soon sort start state stay still "
    "stop sure take tell thing think three time today together top try turn two type use useful usual various wait "
    "way well whether whole without word work world year yes yet"
)
#: Words that occur in texts on many subjects.
_OFTEN = (
    "accept access according account act action active activity address advice affect age ago agree air alone along "
    "amount answer apply area arrive art article available average avoid bad base basic bear believe belong bit black "
    "blue board body book both bottom box break brother build business buy cannot car card cause center century "
    "chance charge check child choice city class clear click close code cold collect color common community company "
    "compare complete computer concern condition connect consider continue control copy correct cost count country "
    "couple course cover create current customer cut daily dark data date deal death decide deep default degree "
    "describe design detail develop difference difficult directly discuss document door double down draw drive drop "
    "due early easy eat economic education effect effort either email employ energy enjoy enter entire equal error "
    "especially event evidence exist experience explain extra eye face fail fall family fast father feature feel "
    "field figure file final fine finish fire fit floor follow food foot force foreign forget form former forward "
    "free friend front function future gain game gas girl glass goal gold government green ground group grow guess "
    "hair half hard have head health heart heat heavy here history home hope hot hour house huge human hundred id "
    "image improve increase indeed individual industry inform inside install interest internet introduce involve "
    "issue job join just key kill king land language late later law lay lead learn length letter library life light "
    "limit link listen load local longer lose love machine maintain major man manage market material maximum maybe "
    "measure media member memory mention message method middle might mile mind minimum minute miss model modern "
    "moment money month morning mother mount move music national natural nature necessary network night normal north "
    "note notice object obtain occur offer office official oil online only operate option original outside own owner "
    "page paper parent particular pass past pay per percent perform period permit phone pick picture piece plan play "
    "please police political poor popular position power practice prepare present president press prevent price print "
    "private probably problem process produce product program project proper protect prove public publish pull "
    "purpose push quality quick rate read recent record red reduce refer region release remain remember remove "
    "replace report represent request require research resource response rest return rich rise road role room rule "
    "safe sale save scene school science screen search section security select self sense separate series serious "
    "serve service seven share sheet shop shut sign similar since sit situation six size skill sleep slow social "
    "society software son sound source south space speak special specific speed spend staff stage stand standard star "
    "step store street strong student study stuff style subject success such suggest summer sun supply support "
    "suppose system table talk tax teach team technology television ten term test text thank third though thousand "
    "throw thus title tomorrow tonight total touch town trade traditional train travel treat tree true trust truth "
    "twice understand unit university until update user value version video view visit voice walk wall want war warm "
    "wash watch water weather web week weight west white wide wife win wind window wish woman wonder wood write wrong "
    "yesterday young"
)
#: Words that occur in texts on some subjects.
_SOMETIMES = (
    "ability abroad absence absolute abuse accident accompany achieve acquire actor addition additional adjust "
    "administration admit adult advance advantage adventure advertise affair afford afraid afternoon agency agent "
    "agreement ahead aid aim alive allowance alternative ancient angle animal announce annual apart apartment "
    "apparent appeal appearance application appoint approach appropriate approve argue argument arm arrange "
    "arrangement arrest arrival aside aspect assess asset assign assist associate association assume attach attack "
    "attempt attend attention attitude attract audience authority automatic autumn award aware baby background bag "
    "balance ball band bank bar battery battle beach beat beautiful beauty bed bedroom behave behind belief bell "
    "beneath benefit beside bill bird birth birthday block blood blow boat bone border boss bother bottle bound bowl "
    "boy brain branch brand bread breakfast bright broad brown brush budget bug burn bus button cake calculate camera "
    "camp campaign cancel candidate capable capacity capital career careful cash cat catch category ceiling celebrate "
    "cell central ceremony certificate chain chair challenge chapter character cheap chief church circle citizen "
    "civil claim clean client climb clock cloth cloud club coal coast coat coffee collection college column combine "
    "comfort command comment commercial commission commit communicate competition complain complex component concept "
    "conclusion conduct conference confident confirm conflict connection consequence consist constant construct "
    "consume contact content context contract contrast contribute convert cook cool corner council court cream crime "
    "criminal crisis critical cross crowd cry culture cup custom cycle damage dance danger dangerous database "
    "daughter dead dear debate debt decade decision decline decrease define definition delay delete deliver demand "
    "deny department depend deposit depth desert desk despite destroy determine device diet digital dinner direction "
    "director disappear discover disease dish display distance distinct distribute district divide doctor dog "
    "domestic doubt download dozen dream dress drink driver drug dry dust duty earn earth east edge edit editor "
    "effective efficient egg eight election electric electronic element emergency emotion employer empty enable "
    "encourage enemy engine engineer english ensure entry environment equipment escape essential establish estate "
    "estimate exam examine excellent except exchange excuse exercise expense expensive expert express expression "
    "extend extent external failure fair faith familiar famous farm fashion fat fault fear fee feed female fight film "
    "finance financial finger firm fish fix flat flight flow flower fly focus folder forest formal format fresh "
    "fridge fruit fuel fun fund furniture garden gate generate gentle gift glad global grade grand grant grass "
    "guarantee guard guest guide gun guy habit hall handle hang happy hat heaven height hell hide hill hire hit "
    "holiday horse hospital host hotel household husband ice identify identity ignore ill immediate impact implement "
    "imply impossible impress income independent index indicate influence initial injury input insist institution "
    "instruction insurance integrate intend intention internal international interview invest investigate invite iron "
    "island journey judge jump justice kitchen knife knock lack lady lake lamp launch lawyer layer leader leg legal "
    "lend lesson licence lie lift location lock log luck lunch magazine mail male manner manual manufacture map mark "
    "marriage marry mass master match meal meat medical medicine membership mental menu metal military milk million "
    "minister minor mirror mistake mix mode module mood moon motor mountain mouse mouth movement museum narrow nation "
    "neck negative neighbor neighbour neither nine noise nose novel nuclear nurse objective obvious ocean odd officer "
    "operation opinion opportunity oppose opposite ordinary organise organization origin otherwise output overall "
    "package pain paint pair parallel park participate partner passage passenger password path patient pattern pause "
    "peace perfect performance permanent permission personal phrase physical piano plant plastic plate platform "
    "player plenty pocket poem poet politics pool population port positive possess post pot potential pound practical "
    "prefer presence pressure pretty previous primary principle prior priority prison prize procedure production "
    "profession professional professor profit progress promise promote property proposal propose protection province "
    "purchase quarter queen quiet race radio rain raise range rapid rare raw reaction reader realise reality realize "
    "recall recognise recognize recommend recover refuse regard register regular reject relate relation relationship "
    "relative relevant relief religion remark remote rent repair repeat reply reputation reserve resident resist "
    "respect respond responsible restaurant restrict review revolution ride ring risk river rock roof root rough "
    "round route routine row royal safety salt sample sand satisfy scale scan schedule scheme score sea season seat "
    "secret secretary secure seek senior sentence sequence server session severe shape sharp shelf shift ship shirt "
    "shoe shoot shoulder shout shower sick sight signal significant silence silver sing sister ski skin sky slight "
    "smart smell smile smoke smooth snow soft soil soldier solution solve song soul soup spare specify spirit split "
    "sport spread spring square stable station status steal steel stick stock stone storage storm straight strange "
    "stream strength stress stretch strike structure struggle sudden suffer sugar suit suitable supper surface "
    "surprise surround survey survive switch symbol tall target task taste tea technical technique telephone "
    "temperature tend terrible theory thick thin threat ticket tie tight tiny tip tire tool tooth topic tour track "
    "traffic transfer transport trip trouble truck tube twelve twenty typical ugly uncle union unique unless upper "
    "urban urgent valid valley variable variety vary vast vehicle victory village visible vision vote wage wake warn "
    "waste wave weak wear website weekend weigh welcome wet wheel whenever wild willing winner winter wire wise "
    "witness wonderful worker worry worth wound yard yellow zero zone"
)
#: The estimated probability that a passage contains a given word of the list.
_LISTS = {_ANYWHERE: 1 / 4, _OFTEN: 1 / 16, _SOMETIMES: 1 / 64}
#: The estimated probability for a word that is in none of the lists.
RARE = 1 / 512


@cache
def _chances() -> dict[str, float]:
    """Map the stem of each listed word to its estimated probability."""
    return {stem_of(word): chance for words, chance in reversed(_LISTS.items()) for word in words.split()}


def is_familiar(word: str) -> bool:
    return stem_of(word) in _chances()


def chance_of(stem: str) -> float:
    """Return the estimated probability that a passage contains a word with this stem."""
    return _chances().get(stem, RARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a source that the search found for the question."""

    chunk: Chunk
    #: The source's title, which may name the subject.
    title: str = ""
    #: The text before the passage, if it is known: the head of a table or list that the passage continues.
    lead: str = ""
    #: The weight of each of the question's words that the passage contains; empty if only vectors matched.
    weights: Mapping[str, float] = field(default_factory=dict)
    #: The source's id; passages without one are of one document if their titles are the same.
    document: str = ""

    @property
    def text(self) -> str:
        return self.chunk.text

    @property
    def context(self) -> str:
        """Return the title and the headings above the text."""
        return " ".join((self.title, *self.chunk.headings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A citation mark in an answer, and the text that it cites."""

    #: The number that the citation mark shows, from 1. Several marks may show the same number.
    number: int
    #: Index of the cited passage, from 0.
    passage: int
    #: The quoted part of the passage's text.
    span: Span
    #: Offset of the mark in the answer, in characters.
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotePlace:
    """The location of a quote in the original document."""

    page: int | None
    line_start: int | None
    line_end: int | None
    #: Offsets of the quote in the extracted text; the end is exclusive.
    char_start: int
    char_end: int
    headings: tuple[str, ...]


def quote_of(passage: Passage, span: Span) -> str:
    return passage.text[span.start : span.end]


def place_of(passage: Passage, span: Span) -> QuotePlace:
    """Return where a quote is in the original document.

    If the lines of the chunk's text differ from those of the original, the line range is that of the whole chunk.
    """
    chunk = passage.chunk
    line_start, line_end = chunk.line_start, chunk.line_end
    if line_start is not None and line_end is not None and chunk.text.count("\n") == line_end - line_start:
        line_end = line_start + chunk.text.count("\n", 0, span.end)
        line_start += chunk.text.count("\n", 0, span.start)
    return QuotePlace(
        page=chunk.page,
        line_start=line_start,
        line_end=line_end,
        char_start=chunk.char_start + span.start,
        char_end=chunk.char_start + span.end,
        headings=chunk.headings,
    )


#: To estimate how common a word is, this many sentences of average English are added to those of the passages.
SENTENCES = 50
#: If the question asks for a number, the coverage of a sentence without a number is multiplied by this.
WITHOUT_NUMBER = 0.1
#: If a team has this many chunks or more, passages are judged as a whole, not by their single sentences.
MANY = 100

#: Phrases of questions that only a number can answer.
ASKS_FOR_NUMBER = re.compile(
    r"\b(?:how (?:many|much|long|old|often|far|big|large|tall|high|deep|wide|heavy|fast|late|early)"
    r"|what time|what year|which year)\b"
)
_ASKS_FOR_COUNT = re.compile(r"\bhow many (\w+)")
_ASKS_FOR_SPAN = re.compile(r"\bhow (?:long|old|often)\b")
_NUMBER_WORDS = (
    "half quarter once twice one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty "
    "sixty seventy eighty ninety hundred thousand million dozen daily weekly monthly yearly free"
)
_NUMBERS = frozenset(_NUMBER_WORDS.split())
_SPAN_WORDS = (
    "second minute hour day night week month year decade century daily weekly monthly yearly born age millimetre "
    "centimetre metre meter kilometre mile inch foot feet mm cm km page line word character byte"
)
_SPANS = frozenset(map(stem_of, _SPAN_WORDS.split()))


def trust_of(question: str, chunks: int) -> float:
    """Return how much single sentences count compared to whole passages, 0 to 1.

    The more chunks there are, the less single sentences count. If most of the question's words are not English, single
    sentences don't count at all.
    """
    words = words_of(question)
    known = sum(word in STOP_WORDS or is_familiar(word) for word in words)
    return max(0.0, 1 - chunks / MANY) if 0 < len(words) <= 2 * known else 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """How well the passages support an answer."""

    #: For each passage, how much of the question its best sentence covers, 0 to 1.
    said: tuple[float, ...]
    #: The weight of each searched word that at least one passage contains.
    weights: Mapping[str, float]


def weigh_evidence(question: str, words: Collection[str], passages: Sequence[Passage]) -> Evidence:
    """Compute how much of the question each passage's best sentence covers. `words` are the words to look for."""
    # For each sentence of each passage: its stems, and whether it has a number.
    read = [
        [
            (_stems(own), any(word in _NUMBERS or any(map(str.isdigit, word)) for word in own))
            for own in (words_of(quote_of(passage, span)) for span in sentences_of(passage.text))
        ]
        for passage in passages
    ]
    # Count a sentence once, even if several documents contain it.
    sentences = {own for each in read for own, _ in each}
    above = []
    for passage, each in zip(passages, read, strict=True):
        # Two kinds of words count for each sentence of the passage: the words of the title and headings, and the words
        # that the index found in the passage although its sentences spell them differently.
        own = frozenset[str]().union(*(stems for stems, _ in each))
        above.append(_stems(words_of(passage.context)) | (frozenset(map(stem_of, passage.weights)) - own))
    having = {stem: sum(stem in own for own in sentences) + SENTENCES * chance_of(stem) for stem in map(stem_of, words)}
    weights = {stem: math.log((len(sentences) + SENTENCES) / count) for stem, count in having.items()}
    squares = {stem: weight**2 for stem, weight in weights.items()}
    wanted = _wanted(question.lower(), squares.keys())

    def share(own: frozenset[str], over: frozenset[str], *, has_number: bool) -> float:
        is_fit = wanted is None or (has_number and (not wanted or not wanted.isdisjoint(own | over)))
        return coverage(squares, own | over) * (1.0 if is_fit else WITHOUT_NUMBER)

    said = tuple(
        max((share(own, over, has_number=has_number) for own, has_number in each), default=0.0)
        for each, over in zip(read, above, strict=True)
    )
    found = frozenset[str]().union(*above, *sentences)
    return Evidence(said, {word: weights[stem_of(word)] for word in words if stem_of(word) in found})


def _wanted(question: str, stems: Collection[str]) -> frozenset[str] | None:
    """Return the stems of words, such as units of time, of which an answer must contain at least one.

    An empty set means that any number may be the answer. None means that the question doesn't ask for a number.
    """
    if (count := _ASKS_FOR_COUNT.search(question)) and stem_of(count[1]) in stems:
        return frozenset({stem_of(count[1])})
    if _ASKS_FOR_SPAN.search(question):
        return _SPANS
    return frozenset() if ASKS_FOR_NUMBER.search(question) else None


def _stems(words: Sequence[str]) -> frozenset[str]:
    # Split names such as `max_file_size`, as the index does.
    return frozenset(stem_of(part) for word in words for part in {word, *word.split("_")})
