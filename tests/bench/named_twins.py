"""Near-twins of six more kinds: manuals, invoices, contracts, samples with temperatures, departments and releases."""

import random

from tests.bench.near_twins import Kind, Twins


def _pumps(twins: Twins, rng: random.Random) -> None:
    for pump in (1, 2, 3, 4):
        bar, litres, hours = rng.randint(3, 19), rng.randint(20, 90), rng.choice([250, 500, 750, 1000])
        valves = rng.sample(range(1, 9), 4)
        file = f"pump-{pump}-manual.md"
        twins.documents[file] = (
            f"# Pump {pump} operating manual\n\n## Data\n\nThe working pressure is {bar} bar. "
            f"The pump moves {litres} litres per minute.\n\n## Starting\n\n"
            f"1. Check the oil.\n2. Open valve {pump}-{valves[0]} slowly.\n3. Press the green button.\n"
            f"4. Turn valve {pump}-{valves[1]} to the right until it stops.\n\n## Stopping\n\n"
            f"1. Press the red button.\n2. Close valve {pump}-{valves[2]}.\n3. Drain the housing.\n\n"
            f"## Service\n\nGrease the bearings every {hours} hours. Renew the seal once a year.\n"
        )
        twins.ask(file, f"{bar} bar", f"At what pressure does pump {pump} work?")
        twins.ask(file, litres, f"How many litres a minute does pump {pump} deliver?")
        twins.ask(file, f"{pump}-{valves[1]}", f"Which valve do I turn in step 4 of starting pump {pump}?")
        twins.ask(file, f"{pump}-{valves[2]}", f"Which valve must be closed when I stop pump {pump}?")
        twins.ask(file, hours, f"How often do the bearings of pump {pump} need grease?")
    twins.absent = [
        "At what pressure does pump 5 work?",
        "Where is valve 1-0?",
        "What is step 9 of starting pump 2?",
        "How loud is pump 3?",
        "How often do the bearings of pump 12 need grease?",
    ]


def _invoices(twins: Twins, rng: random.Random) -> None:
    for number in (2013, 2031, 2103, 2130, 2301, 2310, 3012, 3021):
        total, day, customer = rng.randint(100, 9999), rng.randint(1, 28), rng.choice(["Kestrel Ltd", "Osprey plc"])
        month = rng.choice(["January", "May", "August"])
        file = f"INV-{number}.txt"
        twins.documents[file] = (
            f"INVOICE INV-{number}\n\nCustomer: {customer}\nIssued: {day} {month} 2024\nTotal: {total}.40 EUR\n"
            f"VAT: {total // 5}.20 EUR\nPayable within: {rng.choice([10, 14, 30])} days\n\n"
            f"Please state the invoice number with your payment.\n"
        )
        twins.ask(file, f"{total}.40", f"What is the total of invoice INV-{number}?")
        twins.ask(file, f"{day} {month}", f"When was INV-{number} issued?")
        twins.ask(file, customer, f"Which customer got invoice {number}?")
    twins.absent = [
        "What is the total of invoice INV-3001?",
        "When was INV-2331 issued?",
        "Which customer got invoice 2300?",
        "Who signed invoice INV-2031?",
        "What is the total of invoice INV-201?",
    ]


def _contracts(twins: Twins, rng: random.Random) -> None:
    parts = ["# Contracts in force"]
    for number in (1, 4, 7, 14, 17, 40, 41, 47, 60):
        days, court, sum_ = rng.choice([14, 30, 45, 60, 90]), rng.choice(["Hull", "Leeds", "York"]), rng.randint(10, 99)
        parts += [
            f"## Contract {number}",
            f"The notice period is {days} days. Disputes go to the courts of {court}.",
            f"Liability is limited to {sum_},000 pounds.",
        ]
        twins.ask("contracts.md", f"{days} days", f"How much notice has to be given under contract {number}?")
        twins.ask("contracts.md", court, f"Where are disputes about contract {number} settled?")
        twins.ask("contracts.md", f"{sum_},000", f"Up to what sum is there liability in contract no. {number}?")
    twins.documents["contracts.md"] = "\n\n".join(parts) + "\n"
    twins.absent = [
        "What is the notice period of contract 61?",
        "Where are disputes about contract 70 settled?",
        "Up to what sum is there liability in contract 44?",
        "Who signed contract 7?",
        "What is the notice period of lease 7?",
    ]


def _samples(twins: Twins, rng: random.Random) -> None:
    rows = ["# Cold store", "| Sample | Kept at | Shelf | Taken by |\n| --- | --- | --- | --- |"]
    degrees = [-80, -18, -8, 8, 18, 4, -4]
    for number, degree in zip((3, 13, 30, 31, 33, 130, 300), degrees, strict=True):
        shelf, by = f"{rng.choice('ABCD')}{rng.randint(1, 9)}", rng.choice(["Ito", "Iho", "Ohm", "Onm"])
        spelled = f"{degree} °C".replace("-", "\u2212")
        rows[-1] += f"\n| S-{number} | {spelled} | {shelf} | {by} |"
        twins.ask("samples.md", spelled, f"At what temperature is sample S-{number} kept?")
        twins.ask("samples.md", shelf, f"On which shelf do I find S-{number}?")
        twins.ask("samples.md", f"S-{number}", f"Which sample is kept at {spelled}?")
    twins.documents["samples.md"] = "\n\n".join(rows) + "\n"
    twins.absent = [
        "Which sample is kept at 80 °C?",
        "Which sample is kept at \u221240 °C?",
        "On which shelf do I find S-301?",
        "At what temperature is sample S-1 kept?",
        "How old is sample S-13?",
    ]


def _departments(twins: Twins, rng: random.Random) -> None:
    rows = ["Department,Head,Phone,Floor"]
    heads = ["Dr. Oslander", "Dr. Oslund", "Prof. Reyes", "Dr. Reye", "Ms Tan", "Mr Tran"]
    for name, head in zip(("Q1", "Q2", "Q4", "Q14", "Dispatch", "Night Dispatch"), heads, strict=True):
        phone, floor = rng.randint(4000, 4999), rng.randint(1, 9)
        rows.append(f"{name},{head},{phone},{floor}")
        twins.ask("departments.csv", head, f"Who is the boss of {name}?")
        twins.ask("departments.csv", phone, f"What number do I dial for {name}?")
        twins.ask("departments.csv", floor, f"On which floor does {head} work?")
    twins.documents["departments.csv"] = "\n".join(rows) + "\n"
    twins.absent = [
        "Who is the boss of Q3?",
        "What number do I dial for Q41?",
        "On which floor does Dr. Osman work?",
        "Who is the boss of Day Dispatch?",
        "What is the budget of Q4?",
    ]


def _releases(twins: Twins, rng: random.Random) -> None:
    parts = ["# Release notes"]
    for release in ("1.9.0", "2.0.0", "2.1.0", "2.1.1", "2.1.2", "2.1.12", "2.11.2", "2.12.1", "3.0.0"):
        java, bug, megabytes = rng.choice([8, 11, 17, 21]), rng.randint(1000, 9999), rng.randint(20, 400)
        day = f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        parts += [
            f"## {release} ({day})",
            (
                f"- Needs Java {java} or later.\n- Fixes bug #{bug}, by which exports came out empty.\n"
                f"- The download has {megabytes} MB."
            ),
        ]
        twins.ask("releases.md", f"Java {java}", f"Which Java does release {release} need?")
        twins.ask("releases.md", bug, f"Which bug was fixed in {release}?")
        twins.ask("releases.md", megabytes, f"How big is the download of version {release}?")
    twins.documents["releases.md"] = "\n\n".join(parts) + "\n"
    twins.absent = [
        "Which Java does release 2.1.3 need?",
        "Which bug was fixed in 2.12.2?",
        "How big is the download of version 1.9.1?",
        "Which Python does release 2.1.2 need?",
        "Which Java does release 2.2 need?",
    ]


KINDS: tuple[Kind, ...] = (_pumps, _invoices, _contracts, _samples, _departments, _releases)
