"""Near-twins of ten more kinds, written when the rules of the daemon were finished: no rule was chosen on them."""

import json
import random
from io import BytesIO

import docx

from tests.bench.near_twins import Kind, Twins


def _lifts(twins: Twins, rng: random.Random) -> None:
    parts = ["# Lifts of the valley"]
    for name in ("Adlerhorn", "Adlerkopf", "Brunni", "Brunnalp", "Kaltberg", "Kaltbach"):
        seats, minutes, price = rng.randint(2, 12), rng.randint(3, 25), rng.randint(8, 60)
        parts.append(
            f"## {name}\n\nEach cabin takes {seats} people. The ride to the top is over in {minutes} minutes. "
            f"A single ticket is {price} francs. In a storm the lift stands still."
        )
        twins.ask("lifts.md", seats, f"How many people fit into a cabin of the {name} lift?")
        twins.ask("lifts.md", f"{minutes} minutes", f"How long is the ride up with the {name}?")
        twins.ask("lifts.md", f"{price} francs", f"What is the price of a single ticket for the {name}?")
    twins.documents["lifts.md"] = "\n\n".join(parts)
    twins.absent = [
        "How many people fit into a cabin of the Adlerspitz lift?",
        "How long is the ride up with the Kalthorn?",
        "What is the price of a single ticket for the Brunn?",
        "Who built the Kaltberg lift?",
        "How long is the ride up with the Sonnberg?",
        "When was the Brunni lift opened?",
    ]


def _artworks(twins: Twins, rng: random.Random) -> None:
    rows = ["Accession no.,Title,Artist,Room,Insured for (EUR)"]
    titles = "Harbour at Dawn,Harbour at Dusk,The Blue Jug,The Blue Jar,Winter I,Winter II,Old Mill,Old Mill Pond"
    artists = ["E. Saar", "E. Sarr", "K. Lindqvist", "K. Lindgren", "M. Aalto", "M. Alto", "J. Roos", "J. Roosa"]
    numbers = ["1998.14", "1998.41", "1989.14", "1998.114", "2001.2", "2001.20", "2001.22", "2010.2"]
    for number, title, artist in zip(numbers, titles.split(","), artists, strict=True):
        room, value = rng.randint(1, 29), rng.randint(1000, 99000)
        rows.append(f"{number},{title},{artist},{room},{value}")
        twins.ask("artworks.csv", artist, f"Who painted {number}?")
        twins.ask("artworks.csv", room, f"In which room does {number} hang?")
        twins.ask("artworks.csv", value, f'For how much is "{title}" insured?')
    twins.documents["artworks.csv"] = "\n".join(rows) + "\n"
    twins.absent = [
        "Who painted 1998.4?",
        "In which room does 2001.202 hang?",
        'For how much is "Harbour at Noon" insured?',
        "Who painted 1998.141?",
        'How wide is "Winter II"?',
        "In which room does 1999.14 hang?",
    ]


def _plans(twins: Twins, rng: random.Random) -> None:
    document = docx.Document()
    document.add_heading("Travel insurance", 1)
    table = document.add_table(1, 4)
    for cell, words in zip(table.rows[0].cells, ("Plan", "Premium per year", "Excess", "Baggage cover"), strict=True):
        cell.text = words
    for plan in ("Basic", "Basic Plus", "Comfort", "Comfort Family", "Premium", "Senior"):
        premium, excess, baggage = rng.randint(40, 400), rng.randint(50, 300), rng.randint(500, 9000)
        cells = (plan, f"{premium} EUR", f"{excess} EUR", f"{baggage} EUR")
        for cell, words in zip(table.add_row().cells, cells, strict=True):
            cell.text = words
        twins.ask("plans.docx", f"{premium} EUR", f"What does the plan {plan} cost a year?")
        twins.ask("plans.docx", f"{excess} EUR", f"How high is the excess in the {plan} plan?")
        twins.ask("plans.docx", f"{baggage} EUR", f"Up to which sum is baggage covered in plan {plan}?")
    saved = BytesIO()
    document.save(saved)
    twins.documents["plans.docx"] = saved.getvalue()
    twins.absent = [
        "What does the plan Gold cost a year?",
        "How high is the excess in the Comfort Plus plan?",
        "Up to which sum is baggage covered in plan Junior?",
        "Does the plan Senior pay for dental treatment?",
        "What does the plan Basic Family cost a year?",
        "How high is the excess in the Business plan?",
    ]


def _cases(twins: Twins, rng: random.Random) -> None:
    for case in ("12/2021", "21/2021", "12/2012", "112/2021", "2/2021", "12/2022"):
        day, amount, judge = rng.randint(1, 28), rng.randint(1000, 90000), rng.choice(["Hale", "Hall", "Hill", "Hull"])
        file = f"judgment-{case.replace('/', '-')}.txt"
        twins.documents[file] = (
            f"Case {case}\n\nJudge {judge} heard the parties on {day} October.\n\n"
            f"The defendant is ordered to pay {amount:,} euros. The appeal must be lodged within "
            f"{rng.randint(10, 60)} days. The costs are shared.\n"
        )
        twins.ask(file, f"{amount:,}", f"What sum must the defendant pay in case {case}?")
        twins.ask(file, f"{day} October", f"On which date were the parties heard in case {case}?")
        twins.ask(file, judge, f"Which judge sat in case {case}?")
    twins.absent = [
        "What sum must the defendant pay in case 22/2021?",
        "Which judge sat in case 1/2021?",
        "On which date were the parties heard in case 12/2020?",
        "What was the plaintiff's profession in case 12/2021?",
        "Which judge sat in case 21/2012?",
        "What sum must the defendant pay in case 2/2012?",
    ]


def _recipes(twins: Twins, rng: random.Random) -> None:
    for cake in ("Plum cake", "Plum tart", "Apple cake", "Apple tart", "Lemon tart"):
        grams, degrees, minutes = rng.randint(10, 60) * 10, rng.randint(15, 23) * 10, rng.randint(20, 75)
        file = f"{cake.lower().replace(' ', '-')}.md"
        twins.documents[file] = (
            f"# {cake}\n\n**Flour:** {grams} g\n**Butter:** {rng.randint(50, 250)} g\n**Eggs:** {rng.randint(1, 6)}\n\n"
            f"## Method\n\n1. Mix the flour with the butter.\n2. Roll out the dough.\n"
            f"3. Bake at {degrees} °C for {minutes} minutes.\n4. Let it cool.\n"
        )
        twins.ask(file, f"{grams} g", f'How much flour goes into the "{cake}"?')
        twins.ask(file, f"{degrees} °C", f'At what temperature is the "{cake}" baked?')
        twins.ask(file, f"{minutes} minutes", f'How long does the "{cake}" stay in the oven when baked?')
    twins.absent = [
        'How much flour goes into the "Lemon cake"?',
        'At what temperature is the "Cherry tart" baked?',
        'How much sugar goes into the "Plum tart"?',
        'How long does the "Plum pie" stay in the oven?',
        'What is step 7 of the "Apple cake"?',
        'How much flour goes into the "Pear tart"?',
    ]


def _stops(twins: Twins, rng: random.Random) -> None:
    stops = []
    for code, name in {
        "K7": "Market",
        "K17": "Market North",
        "K70": "Museum",
        "L7": "Mill",
        "L17": "Mill Bridge",
        "L71": "Moor",
    }.items():
        zone, shelter = rng.randint(1, 9), rng.choice(["glass", "wood", "none"])
        stops.append({"code": code, "name": name, "zone": zone, "shelter": shelter, "lines": rng.randint(11, 99)})
        twins.ask("stops.json", zone, f"In which zone is stop {code}?")
        twins.ask("stops.json", shelter, f"What kind of shelter is there at {code}?")
        twins.ask("stops.json", code, f"What is the code of the stop {name}?")
    twins.documents["stops.json"] = json.dumps({"stops": stops}, indent=2)
    twins.absent = [
        "In which zone is stop K77?",
        "What kind of shelter is there at L1?",
        "What is the code of the stop Mill South?",
        "In which zone is stop M7?",
        "Is there a ticket machine at K70?",
        "What is the code of the stop Monument?",
    ]


def _races(twins: Twins, rng: random.Random) -> None:
    parts = []
    for year in (2019, 2021, 2022):
        lines = [f"Lake run {year}", "", "Place   Runner           Club        Time"]
        runners = ["Nora Falk", "Nora Falck", "Ida Falk", "Ole Ness", "Ole Nes", "Tor Vik"]
        rng.shuffle(runners)
        for place, runner in enumerate(runners, 1):
            time, club = f"{rng.randint(31, 59)}:{rng.randint(10, 59)}", rng.choice(["Vidar", "Tjalve", "Gular"])
            lines.append(f"{place}       {runner:<16} {club:<11} {time}")
            if place % 2:
                twins.ask(f"lake-run-{year}.txt", time, f"What was the time of {runner} in {year}?")
                twins.ask(f"lake-run-{year}.txt", club, f"For which club did {runner} run in {year}?")
        twins.documents[f"lake-run-{year}.txt"] = "\n".join(lines) + "\n"
        parts.append(year)
    twins.absent = [
        "What was the time of Nora Falk in 2020?",
        "For which club did Tor Vig run in 2021?",
        "What was the time of Ida Falck in 2022?",
        "How old was Ole Ness in 2019?",
        "What was the time of Ole Vik in 2019?",
        "For which club did Nora Ness run in 2022?",
    ]


def _tickets(twins: Twins, rng: random.Random) -> None:
    parts = []
    for number in (104, 140, 401, 410, 1040, 1004):
        owner, hours = rng.choice(["Priya", "Pryor", "Mateo", "Matteo"]), rng.randint(2, 72)
        part = rng.choice(["printer", "projector", "scanner", "router"])
        parts.append(
            f"<h3>TCK-{number}</h3><p>The {part} on the second floor is broken. {owner} has taken it on.</p>"
            f"<p>It has to be solved within {hours} hours.</p>"
        )
        twins.ask("tickets.html", owner, f"Who has taken on TCK-{number}?")
        twins.ask("tickets.html", part, f"Which device is broken in TCK-{number}?")
        twins.ask("tickets.html", f"{hours} hours", f"Within how many hours has TCK-{number} to be solved?")
    twins.documents["tickets.html"] = f"<html><body><h1>Open tickets</h1>{''.join(parts)}</body></html>"
    twins.absent = [
        "Who has taken on TCK-414?",
        "Which device is broken in TCK-14?",
        "Within how many hours has TCK-10 to be solved?",
        "Who has taken on TKC-104?",
        "Who reported TCK-401?",
        "Which device is broken in TCK-4010?",
    ]


def _vaccines(twins: Twins, rng: random.Random) -> None:
    rows = ["| Vaccine | First dose | Booster after | Price |", "| --- | --- | --- | --- |"]
    for name in ("Hepavax A", "Hepavax B", "Hepavax AB", "Tetrin", "Tetrin Plus", "Morbivac"):
        weeks, years, price = rng.randint(4, 60), rng.randint(2, 20), rng.randint(15, 99)
        rows.append(f"| {name} | week {weeks} | {years} years | € {price} |")
        twins.ask("vaccines.md", f"week {weeks}", f"When is the first dose of {name} given?")
        twins.ask("vaccines.md", f"{years} years", f"After how many years is a booster of {name} due?")
        twins.ask("vaccines.md", f"€ {price}", f"What do you charge for {name}?")
    twins.documents["vaccines.md"] = "# Vaccines for small children\n\n" + "\n".join(rows) + "\n"
    twins.absent = [
        "When is the first dose of Hepavax C given?",
        "After how many years is a booster of Tetrax due?",
        "What do you charge for Morbivac Plus?",
        "Is Hepavax B given to pregnant women?",
        "When is the first dose of Tetrin Forte given?",
        "What do you charge for Polivac?",
    ]


def _wards(twins: Twins, rng: random.Random) -> None:
    parts = ["# Wards\n\nVisitors report at the desk of the ward."]
    for ward in ("2A", "2B", "12A", "12B", "21A"):
        beds, sister, phone = (
            rng.randint(8, 40),
            rng.choice(["Okoye", "Okoro", "Blum", "Blume"]),
            rng.randint(2000, 2999),
        )
        parts.append(f"- **Ward {ward}**\n  - Beds: {beds}\n  - Ward sister: {sister}\n  - Telephone: {phone}")
        twins.ask("wards.md", beds, f"How many beds does ward {ward} have?")
        twins.ask("wards.md", sister, f"Who is the ward sister on {ward}?")
        twins.ask("wards.md", phone, f"What is the phone number of ward {ward}?")
    twins.documents["wards.md"] = "\n".join(parts) + "\n"
    twins.absent = [
        "How many beds does ward 22A have?",
        "Who is the ward sister on 1A?",
        "What is the phone number of ward 21B?",
        "What are the visiting hours of ward 2A?",
        "How many beds does ward 2C have?",
        "Who is the ward sister on 12C?",
    ]


KINDS: tuple[Kind, ...] = (_lifts, _artworks, _plans, _cases, _recipes, _stops, _races, _tickets, _vaccines, _wards)
