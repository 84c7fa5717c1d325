"""What a team has used of its plan, by calendar month."""

from sqlite3 import Connection


def find_answers(connection: Connection, team_id: str, month: str) -> int:
    """How many answers and searches the team has had; `month` is such as `2026-01`."""
    row = connection.execute(
        "SELECT answers FROM usage WHERE team_id = :team_id AND month = :month", {"team_id": team_id, "month": month}
    ).fetchone()
    return row["answers"] if row else 0


def add_answers(connection: Connection, team_id: str, month: str, answers: int) -> None:
    connection.execute(
        "INSERT INTO usage (team_id, month, answers) VALUES (:team_id, :month, :answers)"
        " ON CONFLICT (team_id, month) DO UPDATE SET answers = usage.answers + excluded.answers",
        {"team_id": team_id, "month": month, "answers": answers},
    )
