"""Estimates how common English words are, for teams with too few texts to count them.

A word of the first list occurs in about every 4th passage of a hundred words, a word of the second list in every 16th,
and a word of the third list in every 64th. All other words count as rare, including words of other languages.
"""

from functools import cache

from svc_daemon.core.text.words import stem_of

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
