"""Words that people use for each other when they ask: "boss" for "head", "how high" for "elevation"."""

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from itertools import chain

from svc_daemon.core.text.folding import fold
from svc_daemon.core.text.languages import common_in, stem
from svc_daemon.core.text.words import STOP_WORDS, stem_of, words_of

#: Groups of such words, of everyday English. Some words are in several groups.
_GROUPS = (
    "prepare prepared draw drew drawn draft, supplement surcharge extra single, introduce introduced bring brought "
    "add added new, audience watch viewers spectators visitors, banned forbidden prohibited disallowed, peak level "
    "maximum loud, valid hold holds until expire, charge deposit cost, done carried performed made executed, "
    "quotation quote offer estimate, watch see view, poultry chicken hen cockerel rooster duck, stay staying hotel "
    "accommodation lodging, seat place, flight fly plane, rise rose increase swell, post job vacancy position, free "
    "vacant empty available, retire retires retiring leave, supervise supervisor supervises boss report, callsign "
    "call sign, single alone own, room bed, hand give issue distribute, key code, banned not, tell inform contact "
    "notify, use using work working go, bottom lowest base, top highest peak, seldom rarely, whole full entire "
    "complete, part piece section portion, begin beginning start, edge side, broken broke defect, sheet paper "
    "document, list register record, sort kind type, bit piece, amount volume quantity, sign board notice, poster "
    "notice, advert advertisement ad, speech talk lecture address, essay paper article, reader subscriber, speaker "
    "talker lecturer, user client customer, helper volunteer assistant, assistant aide deputy, partner associate, "
    "colleague coworker, expert specialist consultant, worker labourer, cleaner cleaning clean, gardener gardening "
    "garden, plumber plumbing, electrician electric, carpenter joiner, builder building build, baker bakery bake, "
    "butcher meat, farmer farm, fisherman fishing fish, hunter hunting, sailor seaman crew, soldier army, priest "
    "vicar minister parson, nun convent, mayor council, thief theft steal stolen, burglary burglar break-in, fire "
    "blaze burn burnt, water flood damp leak leakage, leak drip, crack cracked split, rust corrosion corroded, wear "
    "worn, dirt dirty contamination soiled, wash cleaning clean laundry, dry drying, iron press, sew stitch, cut "
    "slice chop, mix stir blend, pour add, fill refill top, empty drain discharge, pump water, melt thaw defrost, "
    "burn heat, bite bitten, sting stung, itch rash, pain hurt ache sore, fever temperature, cough cold, vomit sick, "
    "swell swelling, bleed bleeding blood, bone fracture broken, tooth teeth dental, eye vision, ear hearing, foot "
    "paw leg, skin coat fur, volume litres, speed km, energy electricity kwh, pressure bar psi, voltage volts, "
    "current amps, temperature celsius degrees, humidity moisture damp, ph acid acidity, concentration strength, "
    "speed rpm revolutions, torque nm, force newton, percent percentage rate share, interest rate percent, "
    "subscription fee, membership fee, ticket price fare, entry price admission, reward prize money, budget cost "
    "funds, range km distance, consumption litres, payload kg load, afraid scared scare fear frightened nervous, "
    "mathematics maths math, deputy substitute stand stands replacement vice acting, tolerate allergy allergic "
    "allergies intolerance intolerant, microchip chip transponder, surgeon surgery operation operate performed, "
    "alcohol abv strength strong, greatest biggest largest maximum max highest most, smallest minimum lowest least, "
    "temp temperature, exclude excluded excluding except, sue suing claim claimant lawsuit, allocate allocated assign "
    "hand distribute, bright brightness light lux lumen, penalty caught fine, workaround help helps setting avoid, "
    "hospital hospitalisation clinic, inherit inherits heir leave leaves bequeath, transport carry carried carrier "
    "haulage, ripe ripen mature, dismiss sack, explain reason because, stand proof rest prove, main chief principal "
    "key, room location, hear heard judge preside, view viewing viewings look inspect, wage payroll, occur happen "
    "event, teach subject, employ employer work works, quiet silent silence rest, tyre tyres wheel, knock broke "
    "damaged outage reason, halted paused stopped suspended interrupted, recruit recruiting enrol enrolment, charity "
    "trust foundation, trade occupation profession job living, sponsor godparent godfather godmother, singer singers "
    "voice voices choir, biggest most up, pack failed fail, shifted moved displaced, wander drift, medicine active "
    "substance, hive hives bees, put installed install set, carry carrying cargo load, ground reason, gift present "
    "worth, extra additional each further, x-ray radiograph, spay neuter neutering castrate castration sterilise, "
    "bitch female dog, kitten cat, puppy dog, ill sick unwell, absent apologies unwell, ground earth soil, catch "
    "caught, sack bag, staffed open, cheque payment, postcode zip address, surname name, forename name, edit change, "
    "trial test pilot, delivery arrive arrival, room office, chairs chair chaired presided, duty shift, on-call "
    "standby, warm heated, drop dropped removed discontinued, discontinued withdrawn, edition issue version, premium "
    "monthly, coverage covered insured, settle pay paid payment pays, bill invoice charge, quick soon fast promptly "
    "within, price cost fee fare rate amount pay payment payable expensive sum tariff money sell rent charge quote "
    "worth, extra supplement surcharge additional further, operate run work serve, noise loud noisy sound decibel "
    "quiet, find found detect discover locate, frequency often every interval, people person persons serve serves "
    "serving portion feed, prerequisite require precondition condition requirement need needed must, assess "
    "assessment examine evaluate evaluation, supply supplier deliver provide provider order vendor source, fridge "
    "refrigerator refrigerate cool chill chilled, oven bake roast, forgotten forget miss missed, late later latest "
    "deadline, youngest younger minimum, oldest older maximum, update revise change revision amend, illness ill sick "
    "sickness disease, travel trip journey tour, limit ceiling cap quota allowance, dinner meal supper food eat, "
    "lunch meal food eat, breakfast meal food eat, look appearance appear, choose pick select decide book, phone "
    "telephone call ring dial extension mobile cell number contact, mail email contact, boss head lead leader manager "
    "chief director run chair chairman chairwoman chairperson preside supervisor report supervise oversee manage "
    "charge, keeper keep look maintain care responsible charge tend warden custodian caretaker steward, height high "
    "tall elevation altitude, length long duration last take, weight heavy weigh mass, width wide broad, depth deep, "
    "speed fast velocity quick, age old born, date day when, time hour when, size large big area dimension, start "
    "begin open commence launch commencement onset, end finish close expire stop terminate cancel quit conclude over, "
    "leave depart departure go, arrive arrival reach, deadline due latest until cutoff, deadline close cutoff, rain "
    "rainfall precipitation, tenant renter lessee occupant live, landlord lessor owner, own owner belong property "
    "proprietor, place location site situated address where venue position based, origin from country provenance "
    "source come, teacher lecturer instructor professor teach tutor trainer coach, exam examination test, maximum "
    "most max limit cap exceed top highest above below until up, minimum least min lowest below under younger, buy "
    "bought purchase order acquire acquired acquisition obtain, sell sold vendor supplier seller deliver sale, car "
    "vehicle automobile van, bicycle bike cycle bikes, doctor physician gp medic consultant, medicine drug "
    "medication, job position post role occupation profession work title, pupil student learner, employee staff "
    "worker personnel workforce headcount team crew, holiday vacation leave, salary wage earn pay income remuneration "
    "earnings, error fault failure problem defect bug, broken defective damaged faulty damage break, temperature hot "
    "cold warm heat degrees, capacity hold seat room fit accommodate carry volume, colour shade hue paint, allow "
    "permit permission permitted let may, forbid forbidden prohibit ban banned prohibited, contract agreement deal, "
    "version release build, child kid minor, store storage keep kept stored, agree consent approve approval accept, "
    "object objection oppose, mean meaning signify stand, remove delete drop removed, fix repair mend solve resolve "
    "solution resolution remedy, check inspect inspection test control examine, replace change swap exchange "
    "substitute renew replacement, quantity count number stock amount, contact responsible person, made manufacture "
    "produce maker manufacturer make brand, author write wrote written writer, result score mark grade outcome, "
    "winner win won victory champion first, dose dosage, tablet pill capsule, ingredient contain composition "
    "contents, power wattage watt output, warranty guarantee guaranteed, password pass passcode code pin, distance "
    "far length range, guest visitor, meeting session sitting assembly, decide decision resolve resolution, receive "
    "get grant award recipient beneficiary, city town municipality, country nation state, company firm business "
    "organisation enterprise employer, tax vat duty, opening opened open inaugurate inaugurated, member membership, "
    "ship boat ferry vessel, nurse care, floor storey level story, die died death dead, born birth birthday, husband "
    "wife spouse marry married wedding partner, father dad, mother mum mom, parent father mother, give gave gift "
    "donate donated present donation donor bequest bequeath, shut close closed, photo photograph photographs picture "
    "pictures image, reply answer respond response, retake repeat resit, resign resignation quit notice leave, play "
    "played act acted cast star, invent inventor inventors invention, assemble assembly gather meet muster, evacuate "
    "evacuation, loss lose lost missing, outage down downtime failure unavailable interruption disruption, rubbish "
    "waste trash bin garbage refuse, crossing ride sail sailing voyage, freeze freezer frozen, thick thickness, sign "
    "signature signed signatory, volunteer volunteering charity, represent representative represented agent, "
    "apprentice trainee intern, spin centrifuge, shop store, clothes clothing wear dress attire, luggage baggage bag, "
    "lift elevator, flat apartment, autumn fall, petrol fuel gasoline, film movie, toilet restroom lavatory wc, queue "
    "line, timetable schedule, spend spent budget expenditure cost, expiry expire expiration valid validity until, "
    "valid validity term expire, built build construct construction constructed completed completion erect erected, "
    "design designer designed architect, found founded founder establish established, start begin join joined hired "
    "employed appointment appointed, hire recruit employ employed recruitment vacancy, fire dismiss dismissal "
    "terminate, promote promotion, boss line report, train training course, lesson class course, enrol enroll "
    "register registration sign apply application join, apply application applicant, qualification degree diploma "
    "certificate, skill experience, overtime hours, shift rota, break rest pause, probation trial, pension retire "
    "retirement, bonus premium, expense reimburse reimbursement refund expenses claim, refund money back reimburse "
    "return returned, cancel cancellation withdraw revoke call, postpone delay reschedule defer moved late, book "
    "booking reserve reservation, ticket admission entry entrance, entrance entry door access admission enter, access "
    "accessible enter wheelchair, wheelchair accessible disabled step, parking park garage, dog pet animal pets "
    "animals, cat pet animal, horse pony, cow cattle, sheep flock, room bedroom, bed sleep sleeps, bath shower "
    "bathroom, garden yard, view overlook overlooking, furniture furnished, heating heat boiler radiator, electricity "
    "power electric energy, water tap, internet wifi wlan wireless network, key lock, deposit security bond, lease "
    "rent let tenancy tenant, mortgage loan, loan borrow lend credit, borrow borrower lend lending, overdue late, "
    "discount reduction rebate reduced concession off, total sum altogether overall amount all, net before, gross "
    "before, profit surplus earnings gain, loss deficit, revenue turnover sales income, sale sales sold, share stock, "
    "customer client buyer purchaser, complaint complain grievance, insurer insurance insured cover coverage policy, "
    "excess deductible, claim damage, accident crash collision incident, injury injure injured hurt wound, police "
    "officer, court judge tribunal, lawyer solicitor attorney counsel, law statute act regulation legal, rule "
    "regulation policy, vote ballot poll election, elect elected election chosen, attend attendance attended present "
    "participant participants attendee, absent absence apologies missing, minute minutes protocol, secretary clerk "
    "scribe, treasurer finance accounts, propose proposal proposed motion suggest, second seconded support, agenda "
    "topic item subject, topic subject theme about, task action todo job, assign assigned assignee responsible handle "
    "handled owner deal, due deadline by, urgent urgency priority severity critical, issue ticket case incident "
    "problem, report reported raise raised log logged open opened file filed submit submitted notify, solve solved "
    "fix fixed resolve resolved resolution close closed, cause reason caused root why trigger triggered, reason "
    "because why due, prevent avoid prevention, server host machine, computer machine laptop pc, screen display "
    "monitor, memory ram, disk drive storage, processor cpu chip, battery accumulator cell, charge charging recharge, "
    "port connector socket interface, operating platform system, software program application app, install "
    "installation setup deploy, crash hang freeze, backup copy, timeout wait, retry attempt attempts tries, default "
    "preset standard, setting option parameter configure configuration, introduce introduced add added new since, "
    "deprecate deprecated remove removed drop dropped obsolete, support supported compatible, user account login, "
    "login sign log, size megabyte file, speed rate throughput bandwidth, language languages speak spoken, translate "
    "translation translator, publish published publisher publication appear released, print printed printer edition, "
    "read reader, name called title entitled, nickname known called, chapter section part, isbn number, library lend, "
    "painter artist painted paint, artist painter sculptor musician performer, sculptor sculpture statue, material "
    "made fabric consist stuff, wood timber, metal steel iron, shape form, edge border rim, exhibit exhibition "
    "display show shown, show performance exhibition display, museum gallery collection, acquire acquired acquisition "
    "purchase purchased donate donated gift bought, restore restored restoration repair conservation, century year "
    "period, music song composer, composer compose composed, singer sing vocalist, concert performance gig, band "
    "group, audience spectator spectators attendance visitors, stage hall, actor actress cast, director direct "
    "directed, sport game match, team squad side club, player players, coach trainer train, captain skipper, referee "
    "umpire, goal score, opponent against versus, stadium ground arena venue, league division, race run contest "
    "competition, prize award reward trophy, rank place position ranking, speaker talk lecture presenter present "
    "presentation, host organise organiser organizer organised, sponsor sponsored fund funded funding finance "
    "financed pay, invite invitation guest, party celebration, plane aircraft airplane flight, airline carrier, "
    "airport terminal, gate platform, train rail railway, station stop, bus coach, driver drive chauffeur, pilot "
    "captain, passenger passengers traveller, seat seats, journey trip travel duration, route line way path, detour "
    "diversion, road way street, bridge crossing, stay overnight night, restaurant cafe, menu dish, cook chef "
    "cooking, serve served, drink beverage, vegetarian vegan meat, allergy allergen allergic allergies, recipe dish, "
    "taste flavour flavor, sugar sweet, spice spicy season, boil simmer, calorie energy kcal, salt sodium, plant sow "
    "planting sown seed, harvest pick crop yield picked, flower bloom blossom flowering, prune cut trim, water "
    "irrigate watering, fertilise fertiliser fertilizer feed, sun light, pest insect, species kind type latin, breed "
    "race, latin botanical scientific, egg eggs clutch, nest nesting, young offspring chick pup, lifespan live lives "
    "age, hunt prey, diet eat eats food feed, habitat live lives found, vet veterinary veterinarian, vaccine "
    "vaccination vaccinate jab, patient case, symptom symptoms sign, diagnosis diagnose diagnosed, treat treatment "
    "therapy, ward unit department, side adverse unwanted, pregnant pregnancy, breastfeed breastfeeding, scan x-ray, "
    "result finding findings, dentist dental, appointment visit, opening hours, weather forecast, river stream, "
    "mountain peak summit, beach coast shore, forest wood, church chapel, stair stairs step steps, cellar basement, "
    "attic loft, house home building, factory plant works, warehouse depot store, machine device equipment appliance, "
    "engine motor, pipe tube, tank container vessel, oil lubricant lubricate grease, lubricate lubrication grease "
    "oil, service maintenance maintain serviced servicing maintained, inspection inspect inspected check checked, "
    "spare part parts, screw bolt torque, cable wire lead, plug socket, voltage volt, current amp, lamp light bulb, "
    "alarm alert warning, sensor probe, measure measurement reading measured, sample specimen, laboratory lab, "
    "experiment trial test, batch lot, serial number, model type, load payload carry, tonnage displacement, mileage "
    "odometer driven, registration plate licence, consumption consume use uses, emission emissions, efficiency "
    "efficient, lifetime life, shelf life keep, best before, package packaging pack, box carton case, shipping "
    "shipment ship dispatch delivery deliver delivered sent send, courier carrier, freight cargo, customs duty, "
    "import export, warehouse storage, order ordered, bank account, iban account, cash money, cheque check, invest "
    "investment, grant funding subsidy award, project programme program, goal aim objective purpose target, purpose "
    "aim use reason, use used purpose, progress status state, status state stage condition, complete completed finish "
    "finished done ready, risk danger hazard, safety safe protection protective, fire extinguisher, helmet glove "
    "goggles protective, guard security, visitor visit visitors, neighbour neighbor next adjacent, cousin relative, "
    "brother sister sibling, son daughter child, successor succeed succeeded replace replaced follow followed after, "
    "predecessor before previous former, former previous earlier old, current present now, next following, previous "
    "last, weekly week, daily day, double twice, single one, pair couple two, group size, class pupils, cheap "
    "cheapest inexpensive low, dear expensive, free gratis charge complimentary, include included inclusive, exclude "
    "excluded except exception, mandatory compulsory obligatory required, deliver delivery bring, collect collection "
    "pick fetch, send sent post mail, recipient addressee, sender from, subject about regarding, attach attachment "
    "enclosed, remind reminder, confirm confirmation, reject rejected refuse refused decline declined deny, approve "
    "approved authorise authorised sign, file document, questionnaire survey, mistake error, correct correction, "
    "improve improvement, increase rise raise grow growth up, decrease fall drop decline reduce reduction down, "
    "average mean, percent percentage share proportion, population inhabitants residents people, resident inhabitant "
    "live, king queen, university college, kindergarten nursery, grade class year, subject course, thesis "
    "dissertation, credit credits point points ects, semester term, issue issued date dated "
)

#: Pairs of groups of words that say the opposite of each other.
_OPPOSED = (
    "start begin from open commence / end finish close until expire stop, minimum min least lowest smallest / maximum "
    "max most highest largest, arrive arrival / depart departure leave, buy buyer purchase / sell seller, before / "
    "after, old former previous / new, first / last second third, early earliest / late latest, morning / evening "
    "afternoon night, day / night, inside indoor / outside outdoor, adult / child kid, summer / winter, weekday / "
    "weekend saturday sunday, upper top / lower bottom, north / south, east / west, left / right, net / gross, import "
    "/ export, in / out, single / double, male men boy / female women girl, lend lender / borrow borrower, tenant / "
    "landlord, monthly month / yearly annual year week weekly daily day, gain profit / loss, actual / planned, father "
    "/ mother, son / daughter, brother / sister, husband / wife, hot warm / cold, wet / dry, front / rear back, "
    "deposit / rent, win won winner / lose lost loser, birth born / death died, employer / employee, sent send sender "
    "/ receive received recipient, order ordered / deliver delivered, approve approved / reject rejected, increase / "
    "decrease, member / guest nonmember visitor, water / electricity gas, gold / silver bronze platinum, silver / gold "
    "bronze platinum, bronze / gold silver platinum, platinum / gold silver bronze "
)
OPPOSITES = [tuple(frozenset(map(stem_of, side.split())) for side in pair.split("/")) for pair in _OPPOSED.split(",")]
#: Words with so many letters in common at the beginning, and no more than some others, are of one root.
_ROOT, _MOST_APART = 5, 4


@cache
def _likes() -> dict[str, frozenset[str]]:
    likes: dict[str, frozenset[str]] = {}
    for group in _GROUPS.split(","):
        stems = frozenset(map(stem_of, group.split()))
        for each in stems:
            likes[each] = likes.get(each, frozenset()) | stems
    return likes


def likes_of(stem: str) -> frozenset[str]:
    """Return the stems of the words that people use for this one, and itself."""
    return _likes().get(stem, frozenset((stem,)))


#: Languages whose words are joined to others: "Monatsmiete", "watertoevoer".
_COMPOUNDING = frozenset(("da", "de", "fi", "hu", "nl", "no", "sv"))
#: A shorter word is a part of too many others.
_SHORTEST_PART = 5


def forms_in(words: Collection[str], texts: Iterable[str], language: str) -> dict[str, frozenset[str]]:
    """Return for the stem of each word the stems of its other forms that texts have, and of what is joined with it."""
    having: dict[str, set[str]] = {}
    for word in set(chain.from_iterable(map(words_of, texts))):
        having.setdefault(_form_of(word, language), set()).add(stem_of(word))
    forms: dict[str, frozenset[str]] = {}
    for word in words:
        form = _form_of(word, language)
        found = set(having.get(form, ()))
        if language in _COMPOUNDING and len(form) >= _SHORTEST_PART:
            found.update(*(stems for other, stems in having.items() if other.endswith(form) or other.startswith(form)))
        forms[stem_of(word)] = forms.get(stem_of(word), frozenset()) | found
    return forms


#: Less of such a question than this may be nowhere: how rare its words are isn't known.
MOST_NOWHERE = 0.25
#: Capitalized words within a sentence, and those that are nouns but name nothing.
_NOUN = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]+")
_NO_NOUNS = frozenset(("herr", "herrn", "frau", "dr", "prozent", "uhr", "euro", "sie", "ihr", "ihre", "ihren", "ihnen"))
#: The last letters by which two joined words are of one kind: "Igelgruppe" and "Fuchsgruppe".
_KIND = 6


def is_elsewhere(question: str, text: str, nowhere: Collection[str], language: str) -> bool:
    """Return whether too much of a question in another language than English is nowhere in a text.

    All nouns have capitals in German, so one that the text doesn't have, nor a part of it ("Beitrag" of Jahresbeitrag),
    is what names a thing. Where the text has another of the kind, such as Igelgruppe for Fuchsgruppe, a part doesn't
    count.
    """
    content = set(words_of(question)) - common_in(question) - STOP_WORDS
    nouns = {noun.lower() for noun in _NOUN.findall(question) if language == "de"} - _NO_NOUNS
    words = {word for word in words_of(text) if len(word) >= _SHORTEST_PART}
    is_lost = False
    for noun in nouns.intersection(nowhere):
        parts = {word for word in words if noun.startswith(word) or noun.endswith(word)}
        is_lost |= not parts or any(len(word) > _KIND and word.endswith(noun[-_KIND:]) for word in words - parts)
    return is_lost or len(content.intersection(nowhere)) >= MOST_NOWHERE * max(1, len(content))


@lru_cache(maxsize=2**14)
def _form_of(word: str, language: str) -> str:
    return fold(stem(word, language))


def are_of_one_root(one: str, other: str) -> bool:
    """Return whether two stems differ only in their endings: "invigilat" and "invigilator"."""
    root = max(_ROOT, max(len(one), len(other)) - _MOST_APART)
    return len(one) >= root and one[:root] == other[:root]
