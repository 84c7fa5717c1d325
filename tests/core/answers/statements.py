"""What passages say, and what a model may make of it: fair sentences, and lies of many kinds."""

from typing import NamedTuple


class Statement(NamedTuple):
    """A sentence that cites a passage."""

    passage: str
    sentence: str


LEAVE = (
    "Full-time employees get thirty days of vacation a year. Part-time staff get 15 days. Interns do not get any "
    "paid vacation, but they may take unpaid leave. Requests must reach the manager two weeks before the first "
    "day off."
)
RETURNS = (
    "Goods can be returned within 30 days of delivery. Opened software cannot be returned. Refunds are paid to "
    "the card that was used, within 5 working days. Shipping costs are not refunded."
)
GARAGE = (
    "The garage opens at 7:00 and closes at 22:00. It is closed on Sundays. Smoking is forbidden in the garage. "
    "Visitors may park there only with a permit from Anna Meier, who can be reached at extension 4411."
)
BACKUPS = (
    "Backups run every night and are kept for 90 days. They are encrypted with AES-256. The restore test is not "
    "automatic: an operator starts it by hand each quarter. No backup leaves the European Union."
)
LIMITS = (
    "Each file may have at most 25 MB. A batch has 1 to 100 files. Empty files are rejected with the code "
    "empty_file. The service does not store answers; send the whole conversation each time. The limit is 5 "
    "requests per second."
)
TRIAL = (
    "In the trial of 412 patients, the drug reduced the risk of stroke by 18 percent. It had no effect on "
    "mortality. Side effects were rare. The study was carried out in Norway between 2015 and 2019."
)
CONTRACT = (
    "Either party may terminate the contract with three months' notice to the end of a quarter. The probation "
    "period is 6 months. During probation the notice period is two weeks. Overtime is not paid, unless it was "
    "approved beforehand."
)
FEES = (
    "The membership fee is €40 a year. Students pay half of it. The first month is free of charge. Members who "
    "don't pay by the end of March are excluded. There is no fee for children under 12."
)
CLIMBING = (
    "Hard hats are required on the site at all times. Nobody may enter the pit without a second person. The crane "
    "must never be used in winds above 50 km/h. Ladders longer than 4 metres are locked away at night."
)
PASSWORDS = (
    "Passwords must have at least 12 characters. You must not share your password with anyone. Accounts are "
    "locked after five failed attempts. Two-factor login is optional for guests and mandatory for staff."
)
ROW = "Office | Hours\nOslo | 8-16\nBergen | 9-17\nTromsø | closed"
GERMAN = "Die Garage öffnet um 7 Uhr. Am Sonntag ist sie geschlossen. Besucher brauchen einen Ausweis."
HOTEL = (
    "Check-in is from 3 pm, check-out until 11 am. Dogs are welcome for 12 euros a night, cats are not. Breakfast "
    "is included in every rate. The pool is closed from November to March. Bookings can be cancelled for free up "
    "to 48 hours before arrival; after that the first night is charged."
)
DAEMON = (
    "The daemon never writes a blob twice. A lease runs for 60 seconds and is renewed while the worker lives. "
    "Tasks are tried three times, then they fail with max_attempts_exhausted. Deleted sources are not found by "
    "any search. The index can be made again from the blobs, the state cannot."
)
CLINIC = (
    "Dr. Okafor sees patients on Tuesday and Thursday mornings. New patients must bring a referral. The vaccine "
    "is given in two doses, four weeks apart. Children under six months are not vaccinated. Test results arrive "
    "within 2 days."
)
LEASE = (
    "The tenant pays a deposit of three months' rent. Pets are allowed with the landlord's consent. The rent "
    "rises by 2% every January. Subletting is prohibited. Repairs under 100 euros are paid by the tenant, all "
    "others by the landlord."
)

#: Fair, and supported by their passages.
PROVED = [
    Statement(LEAVE, "Full-time employees get thirty days of vacation a year."),
    Statement(LEAVE, "Part-time staff get fifteen days."),
    Statement(LEAVE, "Interns get no paid vacation."),
    Statement(LEAVE, "Paid vacation is not available to interns."),
    Statement(LEAVE, "Interns may take unpaid leave, but they have no paid vacation."),
    Statement(LEAVE, "Requests have to be with your manager two weeks ahead."),
    Statement(RETURNS, "You can return goods up to 30 days after delivery."),
    Statement(RETURNS, "Software that was opened can't be returned."),
    Statement(RETURNS, "Returning opened software is not possible."),
    Statement(RETURNS, "The money goes back to the card that you used within five working days."),
    Statement(RETURNS, "Shipping costs are excluded from the refund."),
    Statement(RETURNS, "Refunds don't include shipping costs."),
    Statement(GARAGE, "The garage is open from 7 to 22."),
    Statement(GARAGE, "On Sundays the garage is not open."),
    Statement(GARAGE, "Smoking is not allowed in the garage."),
    Statement(GARAGE, "You must not smoke in the garage."),
    Statement(GARAGE, "Visitors can't park there without a permit."),
    Statement(GARAGE, "Anna Meier gives out the permits for visitors and can be reached at extension 4411."),
    Statement(BACKUPS, "Backups are kept for ninety days."),
    Statement(BACKUPS, "They are kept 90 days and encrypted with AES-256."),
    Statement(BACKUPS, "The restore test is started manually by an operator every three months."),
    Statement(BACKUPS, "All backups stay in the European Union."),
    Statement(BACKUPS, "Backups never leave the European Union."),
    Statement(LIMITS, "A file must not exceed 25 MB."),
    Statement(LIMITS, "Files can have no more than 25 MB each."),
    Statement(LIMITS, "Up to one hundred files fit into a batch."),
    Statement(LIMITS, "Empty files are not accepted: they are rejected with empty_file."),
    Statement(LIMITS, "Send the whole conversation each time, since answers are not stored."),
    Statement(LIMITS, "No more than five requests a second are taken."),
    Statement(TRIAL, "The drug lowered the risk of stroke by 18% in 412 patients."),
    Statement(TRIAL, "Mortality was not affected by the drug."),
    Statement(TRIAL, "The Norwegian study ran from 2015 to 2019."),
    Statement(CONTRACT, "Probation lasts half a year."),
    Statement(CONTRACT, "Overtime is paid only if it was approved beforehand."),
    Statement(FEES, "Membership costs 40 euros a year, and students pay half."),
    Statement(FEES, "Nothing is charged in the first month."),
    Statement(FEES, "Children under twelve pay no fee."),
    Statement(FEES, "Whoever has not paid by the end of March is excluded."),
    Statement(CLIMBING, "You always need a hard hat on the site."),
    Statement(CLIMBING, "Entering the pit alone is forbidden; there must be a second person."),
    Statement(CLIMBING, "The crane must not be used when the wind is above 50 km/h."),
    Statement(PASSWORDS, "A password needs 12 characters or more."),
    Statement(PASSWORDS, "Sharing your password is prohibited."),
    Statement(PASSWORDS, "Staff must use two-factor login, guests don't have to."),
    Statement(ROW, "The office in Oslo is open from 8 to 16."),
    Statement(ROW, "Tromsø is closed."),
    Statement(GERMAN, "Die Garage ist am Sonntag geschlossen, sonst öffnet sie um 7 Uhr."),
    Statement(HOTEL, "A dog costs €12 per night."),
    Statement(HOTEL, "Cats aren't welcome."),
    Statement(HOTEL, "You don't pay extra for breakfast, since every rate includes it."),
    Statement(HOTEL, "The pool doesn't open between November and March."),
    Statement(HOTEL, "Cancelling costs nothing up to two days before arrival."),
    Statement(DAEMON, "No blob is ever written twice."),
    Statement(DAEMON, "Leases last a minute and are renewed as long as the worker is alive."),
    Statement(DAEMON, "No search finds a deleted source."),
    Statement(DAEMON, "Unlike the index, the state can't be made again from the blobs."),
    Statement(CLINIC, "Dr. Okafor has hours on Tuesdays and Thursdays in the morning."),
    Statement(CLINIC, "Without a referral new patients are not seen."),
    Statement(CLINIC, "Babies younger than six months don't get the vaccine."),
    Statement(CLINIC, "You have your test results after two days at most."),
    Statement(LEASE, "Pets need the consent of the landlord."),
    Statement(LEASE, "Each January the rent goes up by two percent."),
    Statement(LEASE, "The tenant must not sublet."),
    Statement(LEASE, "Small repairs of less than 100 euros are on the tenant, the landlord pays for the rest."),
]
#: Fair, but with digits where the passage has a word, or another number for the same.
ALARMS = [
    Statement(LEAVE, "Employees who work full-time have 30 days of vacation each year."),
    Statement(LEAVE, "You get 30 vacation days a year if you work full time."),
    Statement(LEAVE, "Full-time employees get 30 days, while part-time staff get 15."),
    Statement(LEAVE, "The manager must have the request 14 days before the first day off."),
    Statement(GARAGE, "The garage closes at 10 pm."),
    Statement(
        CONTRACT, "The contract can be terminated by either side with a notice of 3 months to the end of a quarter."
    ),
    Statement(CONTRACT, "During the six months of probation the notice period is 14 days."),
    Statement(PASSWORDS, "After 5 failed attempts the account is locked."),
    Statement(HOTEL, "You can check in from 15:00."),
    Statement(HOTEL, "Rooms have to be left by 11 in the morning at the latest."),
    Statement(DAEMON, "After 3 attempts a task fails with max_attempts_exhausted."),
    Statement(CLINIC, "There are 2 doses of the vaccine, with 28 days between them."),
    Statement(LEASE, "The deposit is 3 months of rent."),
]
#: With a number, a name, a code or a currency that the passage does not have, or with other words altogether.
FOUND_OUT = [
    Statement(LEAVE, "Full-time employees get 31 days of vacation a year."),
    Statement(LEAVE, "Part-time staff get 30 days."),
    Statement(GARAGE, "Anna Meier can be reached at extension 4412."),
    Statement(LIMITS, "Each file may have at most 25 GB."),
    Statement(FEES, "The membership fee is $40 a year."),
    Statement(GERMAN, "Die Garage öffnet um 9 Uhr."),
    Statement(GARAGE, "Visitors need a permit from Jonas Weber."),
    Statement(GARAGE, "It is closed on Mondays."),
    Statement(TRIAL, "The study was carried out in Denmark between 2015 and 2019."),
    Statement(BACKUPS, "They are encrypted with RSA-256."),
    Statement(FEES, "Members who don't pay by the end of June are excluded."),
    Statement(LIMITS, "Empty files are rejected with the code E42."),
    Statement(GARAGE, "The moon is made of cheese."),
    Statement(HOTEL, "You can check in from 1 pm."),
    Statement(CLINIC, "Dr. Tanaka sees patients on Tuesday and Thursday mornings."),
    Statement(CLINIC, "Dr. Okafor sees patients on Friday mornings."),
]
#: Made of the passage's own words and numbers: negations, opposites, other units, numbers in words.
MISSED = [
    Statement(LEAVE, "Full-time employees get forty days of vacation a year."),
    Statement(LEAVE, "Part-time staff get twenty-five days."),
    Statement(LEAVE, "Requests must reach the manager six weeks before the first day off."),
    Statement(RETURNS, "Refunds are paid within fifty working days."),
    Statement(GARAGE, "The garage opens at nine."),
    Statement(TRIAL, "The drug reduced the risk of stroke by eighty percent."),
    Statement(TRIAL, "The study had four thousand patients."),
    Statement(FEES, "The membership fee is four hundred euros a year."),
    Statement(CLIMBING, "Ladders longer than seven metres are locked away at night."),
    Statement(CONTRACT, "The probation period is twelve months."),
    Statement(LEAVE, "Full-time employees get thirty weeks of vacation a year."),
    Statement(RETURNS, "Goods can be returned within 30 hours of delivery."),
    Statement(BACKUPS, "Backups are kept for 90 minutes."),
    Statement(CONTRACT, "The contract can be terminated with three weeks' notice to the end of a quarter."),
    Statement(LIMITS, "The limit is 5 requests per minute."),
    Statement(LEAVE, "Full-time employees do not get vacation."),
    Statement(LEAVE, "Interns get paid vacation."),
    Statement(LEAVE, "Interns may not take unpaid leave."),
    Statement(RETURNS, "Opened software can be returned."),
    Statement(RETURNS, "Goods cannot be returned within 30 days of delivery."),
    Statement(RETURNS, "Shipping costs are refunded."),
    Statement(RETURNS, "Shipping costs are never paid by the customer, they are refunded."),
    Statement(GARAGE, "Smoking is not forbidden in the garage."),
    Statement(GARAGE, "The garage doesn't close at 22:00."),
    Statement(BACKUPS, "Backups are not encrypted."),
    Statement(BACKUPS, "Backups are unencrypted."),
    Statement(BACKUPS, "Backups leave the European Union."),
    Statement(LIMITS, "The service stores answers."),
    Statement(LIMITS, "Empty files are not rejected."),
    Statement(TRIAL, "The drug had an effect on mortality."),
    Statement(TRIAL, "The drug did not reduce the risk of stroke."),
    Statement(CLIMBING, "Hard hats are not required on the site."),
    Statement(CLIMBING, "The crane may be used in winds above 50 km/h."),
    Statement(PASSWORDS, "You may share your password with anyone."),
    Statement(PASSWORDS, "Accounts are not locked after five failed attempts."),
    Statement(FEES, "There is a fee for children under 12."),
    Statement(GARAGE, "The garage is open on Sundays."),
    Statement(GARAGE, "Smoking is allowed in the garage."),
    Statement(BACKUPS, "The restore test is automatic."),
    Statement(LIMITS, "Each file may have at least 25 MB."),
    Statement(TRIAL, "The drug increased the risk of stroke by 18 percent."),
    Statement(LEAVE, "Requests must reach the manager two weeks after the first day off."),
    Statement(PASSWORDS, "Two-factor login is optional for staff."),
    Statement(PASSWORDS, "Passwords must have at most 12 characters."),
    Statement(CLIMBING, "Hard hats are optional on the site."),
    Statement(ROW, "The office in Tromsø is open."),
    Statement(HOTEL, "Cats are welcome for 12 euros a night."),
    Statement(HOTEL, "Dogs are not welcome."),
    Statement(HOTEL, "Breakfast is not included."),
    Statement(HOTEL, "The pool is open from November to March."),
    Statement(HOTEL, "Bookings can be cancelled for free up to 48 minutes before arrival."),
    Statement(HOTEL, "A dog costs 12 dollars a night."),
    Statement(DAEMON, "The daemon writes each blob twice."),
    Statement(DAEMON, "A lease runs for ninety seconds."),
    Statement(DAEMON, "Deleted sources are found by every search."),
    Statement(DAEMON, "The index cannot be made again from the blobs."),
    Statement(DAEMON, "Tasks are tried thirteen times."),
    Statement(CLINIC, "New patients need not bring a referral."),
    Statement(CLINIC, "The vaccine is given in two doses, four days apart."),
    Statement(CLINIC, "Children under six months are vaccinated."),
    Statement(LEASE, "Subletting is allowed."),
    Statement(LEASE, "Pets are not allowed, even with the landlord's consent."),
    Statement(LEASE, "The rent falls by 2% every January."),
    Statement(LEASE, "The tenant pays a deposit of five months' rent."),
    Statement(LEASE, "Repairs under 100 euros are paid by the landlord."),
]
