"""Words that people use for each other when they ask: "boss" for "head", "how high" for "elevation"."""

from functools import cache

from svc_daemon.core.text.words import stem_of

#: Groups of such words, of everyday English. Some words are in several groups.
_GROUPS = (
    "price cost fee fare rate amount pay payment payable expensive sum tariff money sell rent charge, "
    "extra supplement surcharge additional further, operate run work serve, noise loud noisy sound, "
    "find found detect discover, frequency often every, "
    "people person persons serve serves serving portion feed, prerequisite require precondition, "
    "assess assessment examine, supply supplier deliver provide order, fridge refrigerator refrigerate cool chill, "
    "oven bake roast, forgotten forget miss missed, late later latest deadline, youngest younger minimum, "
    "oldest older maximum, update revise change, illness ill sick sickness, travel trip journey, "
    "limit ceiling cap, dinner meal supper, look appearance appear, choose pick select decide book, "
    "phone telephone call ring dial extension mobile cell, mail email, "
    "boss head lead leader manager chief director run chair chairman chairwoman chairperson preside "
    "supervisor report, "
    "keeper keep look maintain care responsible charge tend warden custodian caretaker, "
    "height high tall elevation altitude, length long duration last take, weight heavy weigh mass, width wide broad, "
    "depth deep, speed fast velocity quick, age old, date when day, time when hour, size large big area, "
    "start begin open commence launch, end finish close expire stop terminate cancel quit, "
    "leave depart departure go, arrive arrival reach, deadline due latest until close, rain rainfall, "
    "tenant renter lessee occupant live, landlord lessor, owner own belong, "
    "place location site situated address where, origin from, teacher lecturer instructor professor teach tutor, "
    "exam examination test, maximum most max limit cap exceed top highest above below until, "
    "minimum least min lowest below under younger, "
    "buy purchase order, sell vendor supplier seller deliver, car vehicle automobile, bicycle bike cycle, "
    "doctor physician, medicine drug medication, job position post role, pupil student, "
    "employee staff worker personnel, holiday vacation, salary wage earn, error fault failure, "
    "broken defective damaged faulty, temperature hot cold warm heat, capacity hold seat room fit, "
    "colour shade hue, allow permit permission permitted, forbid prohibit ban, contract agreement, invoice bill, "
    "version release, child kid, store storage, agree consent approve approval accept, object objection, "
    "mean meaning signify, need require requirement, remove delete, fix repair mend, check inspect inspection test, "
    "replace change swap, penalty fine, quantity count number stock, person contact responsible, "
    "made manufacture produce maker manufacturer, author write, result score mark grade, winner win, "
    "dose dosage, tablet pill, ingredient contain, power wattage watt, warranty guarantee, password pass, "
    "distance far length, frequency often, guest visitor, meeting session, decide decision resolve, "
    "receive get grant award, road street, city town, country nation, company firm, tax vat, "
    "opening opened, member membership, trip journey, ship boat ferry vessel, nurse care, floor storey level, "
    "die died death dead, born birth, husband wife spouse marry married, father mother parent, give gave gift donate "
    "donated present, shut close closed, photo photograph photographs picture pictures, reply answer respond response, "
    "retake repeat resit, resign resignation quit notice, play played act acted cast star, cold temperature degrees, "
    "invent inventor inventors, assemble assembly gather meet, evacuate evacuation, loss lose lost, "
    "outage down downtime failure, rubbish waste trash bin, bicycle bikes, crossing ride sail sailing, "
    "freeze freezer frozen, thick thickness, sign signature signed, volunteer volunteering charity, "
    "represent representative represented, apprentice trainee, donor gift, width wide, spin centrifuge, bill invoice, "
    "dad father, mum mother, shop store, clothes clothing wear, luggage baggage bag, lift elevator, flat apartment, "
    "autumn fall, garbage rubbish, petrol fuel, film movie, toilet restroom, queue line, timetable schedule"
)


@cache
def _likes() -> dict[str, frozenset[str]]:
    likes: dict[str, frozenset[str]] = {}
    for group in _GROUPS.split(","):
        stems = frozenset(map(stem_of, group.split()))
        for stem in stems:
            likes[stem] = likes.get(stem, frozenset()) | stems
    return likes


def likes_of(stem: str) -> frozenset[str]:
    """Return the stems of the words that people use for this one, and itself."""
    return _likes().get(stem, frozenset((stem,)))
