"""Near-twins of eleven kinds, from timetables to bylaws, as `near_twins` describes."""

import calendar
import random
from io import BytesIO

import docx

from tests.bench.near_twins import Kind, Twins


def _ferries(twins: Twins, rng: random.Random) -> None:
    parts = ["# Ferries of the sound"]
    for route, (start, end) in {
        1: ("Orla", "Borg"),
        2: ("Orla", "Skarn"),
        7: ("Borg", "Tind"),
        11: ("Skarn", "Holm"),
        12: ("Tind", "Holm"),
        21: ("Holm", "Orla"),
        70: ("Borg", "Holm"),
    }.items():
        minutes, fare, pier = rng.randint(20, 190), rng.randint(4, 39), rng.choice("ABCDEF")
        first, last = f"{rng.randint(5, 8)}:{rng.randint(10, 59)}", f"{rng.randint(18, 22)}:{rng.randint(10, 59)}"
        parts += [
            f"## Route {route}: {start} to {end}",
            f"The crossing takes {minutes} minutes. Bicycles travel for €{fare}.50 each way.",
            f"| Trip | Leaves | Pier |\n| --- | --- | --- |\n| First | {first} | {pier} |\n| Last | {last} | {pier} |",
        ]
        twins.ask("ferries.md", minutes, f"How long does the boat on route {route} need for the crossing?")
        twins.ask("ferries.md", f"{fare}.50", f"What do I pay to take my bicycle on route {route}?")
        twins.ask("ferries.md", last, f"When does the last trip of route {route} leave?")
    twins.documents["ferries.md"] = "\n\n".join(parts) + "\n"
    twins.absent = [
        "How long is the crossing on route 17?",
        "What does a bicycle cost on route 71?",
        "When does the last trip of route 3 leave?",
        "How long is the crossing from Orla to Vardo?",
        "What does a car cost on route 12?",
        "When does the first trip of route 22 leave?",
    ]


def _stations(twins: Twins, rng: random.Random) -> None:
    rows = ["Station,Site,Height (m),Lowest (°C),Keeper"]
    sites = [
        "Orla Ridge",
        "Borg Moor",
        "Skarn Pass",
        "Tind Glacier",
        "Holm Dyke",
        "Upper Holm",
        "Lower Holm",
        "Aska Fen",
    ]
    keepers = ["Ines Vang", "Ivar Vang", "Pia Lund", "Per Lund", "Ada Moe", "Odd Moe", "Liv Dahl", "Leif Dahl"]
    rng.shuffle(keepers)
    numbers = [4, 14, 40, 41, 44, 140, 144, 400]
    cold = rng.sample(range(6, 30), 8)
    for place, (site, keeper, number) in enumerate(zip(sites, keepers, numbers, strict=True)):
        height, lowest = rng.randint(100, 1900), -cold[place] if place % 3 else cold[place]
        rows.append(f"ST-{number},{site},{height},{lowest},{keeper}")
        twins.ask("stations.csv", keeper, f"Who looks after station ST-{number}?")
        twins.ask("stations.csv", height, f"How high up is {site}?")
        if place < 4:
            twins.ask("stations.csv", lowest, f"What's the lowest reading ever at ST-{number}?")
    twins.documents["stations.csv"] = "\n".join(rows) + "\n"
    twins.absent = [
        "Who looks after station ST-401?",
        "How high up is Middle Holm?",
        "What's the lowest reading at ST-1?",
        "Which station does Nils Vang look after?",
        "What is the wind speed at ST-14?",
        "Who keeps station SD-40?",
    ]


def _leaflets(twins: Twins, rng: random.Random) -> None:
    names = ["Velorin 5 mg", "Velorin 50 mg", "Velorin Forte 50 mg", "Velorex 5 mg", "Zemadol 20 mg", "Zemadol 200 mg"]
    for name in names:
        file = f"{name.lower().replace(' ', '-')}.md"
        most, hours, months = rng.randint(2, 9), rng.randint(4, 23), rng.randint(6, 35)
        degrees = rng.choice([8, 15, 20, 25, 30])
        twins.documents[file] = (
            f"# {name}\n\n## How to take it\n\nAdults swallow one tablet with water. "
            f"Leave at least {hours} hours between two doses. Do not exceed {most} tablets a day.\n\n"
            f"## Storage\n\nKeep the box dry and below {degrees} °C. Once opened, use it up within {months} months.\n"
        )
        twins.ask(file, most, f"What is the daily maximum of tablets for {name}?")
        twins.ask(file, hours, f"How many hours must pass between doses of {name}?")
        twins.ask(file, f"{months} months", f"How long is {name} good after opening?")
    twins.absent = [
        "What is the daily maximum of tablets for Velorin 500 mg?",
        "How many hours must pass between doses of Zemadol 2 mg?",
        "How long is Velorex 50 mg good after opening?",
        "What is the daily maximum of tablets for Zemarin 20 mg?",
        "Can children be given Velorex 5 mg?",
    ]


def _paints(twins: Twins, rng: random.Random) -> None:
    shades = ["slate", "ochre", "ivory", "moss", "rust", "indigo", "sand", "plum", "teal"]
    rng.shuffle(shades)
    for code, shade in zip(
        ["P-1", "P-2", "P-12", "P-21", "P-112", "P-120", "Q-12", "Q-21", "R-2"], shades, strict=True
    ):
        coverage, drying, price = rng.randint(5, 14), rng.randint(2, 20), rng.randint(11, 69)
        twins.documents[f"mix-{code.lower()}.txt"] = (
            f"MIX SHEET\nMix: {code}\nShade: {shade}\nCoverage: {coverage} m² per litre\n"
            f"Drying time: {drying} h\nPrice per litre: {price}.90 EUR\nThinner: {rng.choice(['water', 'spirit'])}\n"
        )
        twins.ask(f"mix-{code.lower()}.txt", shade, f"Which shade is {code}?")
        twins.ask(f"mix-{code.lower()}.txt", f"{price}.90", f"What's the price of a litre of mix {code}?")
    twins.absent = [
        "Which shade is P-22?",
        "What's the price of a litre of mix P-11?",
        "How long does Q-2 take for drying?",
        "Which shade is R-12?",
        "How toxic is mix P-12?",
    ]


def _modules(twins: Twins, rng: random.Random) -> None:
    rows = []
    for code, title in {
        "BIO-101": "Cells",
        "BIO-110": "Plants",
        "BIO-201": "Animals",
        "CHE-101": "Matter",
        "CHE-110": "Bonds",
        "PHY-101": "Motion",
        "PHY-201": "Waves",
    }.items():
        credits_, teacher, room = (
            rng.randint(2, 12),
            rng.choice(["Okafor", "Lindt", "Sato", "Weiss"]),
            rng.randint(100, 399),
        )
        exam = f"{rng.randint(1, 28)} {rng.choice(['January', 'June', 'July'])}"
        rows.append(
            f"<h2>{code} {title}</h2><dl><dt>Credits</dt><dd>{credits_}</dd><dt>Lecturer</dt><dd>Dr. {teacher}</dd>"
            f"<dt>Room</dt><dd>{room}</dd><dt>Examination</dt><dd>{exam}</dd></dl>"
        )
        twins.ask("modules.html", credits_, f"How many credits is {code} worth?")
        twins.ask("modules.html", room, f"In which room is {code} taught?")
        twins.ask("modules.html", exam, f"When is the examination in {code}?")
    twins.documents["modules.html"] = f"<html><body><h1>Modules</h1>{''.join(rows)}</body></html>"
    twins.absent = [
        "How many credits is BIO-111 worth?",
        "In which room is CHE-201 taught?",
        "When is the examination in PHY-110?",
        "Who is the lecturer of GEO-101?",
        "What is the tuition fee for BIO-201?",
    ]


def _flats(twins: Twins, rng: random.Random) -> None:
    tenants = ["Ruiz", "Rossi", "Novak", "Nowak", "Haas", "Hase", "Olin"]
    for flat, tenant in zip(["3B", "3C", "13B", "13C", "31B", "4B", "4C"], tenants, strict=True):
        rent, deposit, meter = rng.randint(600, 1900), rng.randint(1000, 4000), rng.randint(10000, 99999)
        notice = rng.choice([30, 45, 60, 90])
        twins.documents[f"flat-{flat.lower()}.md"] = (
            f"---\nflat: {flat}\ntenant: {tenant}\nrent: {rent} EUR\ndeposit: {deposit} EUR\nmeter: {meter}\n---\n\n"
            f"The tenant may keep one cat. Either side ends the tenancy with {notice} days' notice.\n"
        )
        twins.ask(f"flat-{flat.lower()}.md", rent, f"How much is the rent of flat {flat}?")
        twins.ask(f"flat-{flat.lower()}.md", tenant, f"Who's the tenant in {flat}?")
        twins.ask(
            f"flat-{flat.lower()}.md", f"{notice} days", f"With how many days of notice can flat {flat} be given up?"
        )
    twins.absent = [
        "How much is the rent of flat 33B?",
        "Who's the tenant in 3D?",
        "With how many days of notice can flat 14B be given up?",
        "What is the deposit for flat 1B?",
        "How many square metres has flat 3C?",
        "Is flat 4A let?",
    ]


def _errors(twins: Twins, rng: random.Random) -> None:
    parts = ["# Kilns: what the display shows"]
    causes = ["the lid is open", "the thermocouple is broken", "the fan is blocked", "the mains voltage is low"]
    cures = ["Close the lid", "Replace the thermocouple", "Clean the fan", "Call the electrician"]
    for kiln in ("A1", "A2", "B1", "B12"):
        parts.append(f"## Kiln {kiln}")
        order = rng.sample(range(4), 4)
        for code, place in zip(["E04", "E40", "E44", "F04"], order, strict=True):
            parts.append(f"{code}\n: It means that {causes[place]}. {cures[place]}, then press reset.")
            twins.ask("kilns.md", causes[place], f"What does {code} on kiln {kiln} mean?")
    twins.documents["kilns.md"] = "\n\n".join(parts) + "\n"
    twins.absent = [
        "What does E14 on kiln A2 mean?",
        "What does E04 on kiln A12 mean?",
        "What does F40 on kiln B1 mean?",
        "What should I do when kiln C1 shows E40?",
        "What does E44 on kiln B2 mean?",
    ]


def _minutes(twins: Twins, rng: random.Random) -> None:
    for day, month in ((4, 3), (14, 3), (4, 4), (24, 4), (14, 6), (15, 6), (1, 11)):
        roof, choir = rng.randint(1000, 9999), rng.randint(100, 990)
        chair = rng.choice(["Mrs Adler", "Mr Adler", "Ms Ibsen", "Mr Olsen", "Mrs Brandt"])
        file = f"minutes-2024-{month:02}-{day:02}.txt"
        twins.documents[file] = (
            f"Minutes of the parish council of {day} {calendar.month_name[month]} 2024\n\n"
            f"{chair} took the chair at seven.\n\n"
            f"The council granted {roof:,} euros for the repair of the roof. It refused a new organ. "
            f"The choir receives {choir} euros for its journey.\n"
        )
        said = f"{day} {calendar.month_name[month]}"
        twins.ask(file, f"{roof:,}", f"How much money did the council grant for the roof on {said}?")
        twins.ask(file, choir, f"What did the choir receive at the meeting of {said}?")
        twins.ask(file, chair, f"Who was in the chair on {said} 2024?")
    twins.absent = [
        "How much did the council grant for the roof on 5 March?",
        "What did the choir receive at the meeting of 14 April?",
        "Who was in the chair on 14 March 2023?",
        "How much did the council grant for the bells on 4 April?",
        "What did the choir receive at the meeting of 11 January?",
        "How much was granted for the roof on 24 June?",
    ]


def _domes(twins: Twins, rng: random.Random) -> None:
    parts = ["# Observatory handbook"]
    acts = [
        "Lift lever {} until it clicks",
        "Turn crank {} twice to the left",
        "Unlock shutter {} with the blue key",
        "Switch on motor {} and wait",
        "Read gauge {} aloud",
    ]
    for dome in (1, 3, 13, 31):
        for what in ("Opening", "Closing"):
            parts.append(f"## Dome {dome}\n\n### {what}\n\nAsk the night assistant first. Then:")
            steps = []
            for number, act in enumerate(rng.sample(acts, 5), 1):
                part = f"{dome}-{rng.randint(1, 9)}"
                steps.append(f"{number}. {act.format(part)}.")
                if number in (2, 4):
                    twins.ask("domes.md", part, f"What is step {number} of {what.lower()} dome {dome}?")
            parts.append("\n".join(steps))
    twins.documents["domes.md"] = "\n\n".join(parts) + "\n"
    twins.absent = [
        "What is step 7 of opening dome 3?",
        "What is step 2 of closing dome 33?",
        "Which lever is lifted when opening dome 2?",
        "What is step 4 of cleaning dome 13?",
        "What is step 1 of opening dome 11?",
    ]


def _tariffs(twins: Twins, rng: random.Random) -> None:
    for year in (2022, 2023, 2024):
        file, document = f"tariff-{year}.docx", docx.Document()
        document.add_heading(f"Electricity tariff {year}", 1)
        document.add_paragraph("All prices are net, in cents per kilowatt hour.")
        table = document.add_table(1, 4)
        for cell, words in zip(table.rows[0].cells, ("Zone", "Day price", "Night price", "Meter rent"), strict=True):
            cell.text = words
        for zone in ("North", "North-East", "South", "Harbour"):
            day, night, rent = (f"{rng.randint(low, low + 19)}.{rng.randint(1, 9)}" for low in (30, 10, 60))
            for cell, words in zip(table.add_row().cells, (f"Zone {zone}", day, night, rent), strict=True):
                cell.text = words
            twins.ask(file, day, f"What was the day price in zone {zone} in {year}?")
            twins.ask(file, night, f"In {year}, how much was electricity at night in zone {zone}?")
        saved = BytesIO()
        document.save(saved)
        twins.documents[file] = saved.getvalue()
    twins.absent = [
        "What was the day price in zone North in 2021?",
        "In 2024, how much was electricity at night in zone West?",
        "What was the meter rent in zone South-East in 2023?",
        "How much was gas in zone Harbour in 2022?",
        "What will the day price in zone South be in 2025?",
    ]


def _bylaws(twins: Twins, rng: random.Random) -> None:
    parts = ["# Bylaws of the allotment society"]
    for paragraph, subject in {
        "§ 2": "Membership",
        "§ 3": "Bees",
        "§ 12": "Dogs",
        "§ 13": "Fences",
        "§ 21": "Fires",
        "§ 22": "Meetings",
    }.items():
        days, fine, votes = rng.randint(5, 60), rng.randint(10, 400), rng.randint(3, 40)
        parts += [
            f"## {paragraph} {subject}",
            f"Objections reach the board within {days} days. A breach costs the member {fine} euros.",
            f"An exception needs the consent of {votes} members.",
        ]
        twins.ask("bylaws.md", days, f"Within how many days must I object under {paragraph}?")
        twins.ask("bylaws.md", fine, f"What does a breach of {paragraph} cost?")
        twins.ask("bylaws.md", votes, f"How many members must agree to an exception from {paragraph}?")
    twins.documents["bylaws.md"] = "\n\n".join(parts) + "\n"
    twins.absent = [
        "Within how many days must I object under § 1?",
        "What does a breach of § 23 cost?",
        "How many members must agree to an exception from § 33?",
        "What does § 112 say about dogs?",
        "How long may a member of the board serve under § 2?",
        "What does a breach of § 31 cost?",
    ]


KINDS: tuple[Kind, ...] = (
    _ferries,
    _stations,
    _leaflets,
    _paints,
    _modules,
    _flats,
    _errors,
    _minutes,
    _domes,
    _tariffs,
    _bylaws,
)
