"""Q&A sources: which questions and answers are accepted, and the Markdown that is stored."""

from collections.abc import Sequence

from svc_daemon.core.json_bodies import refusal
from svc_daemon.settings.limits import Limits

#: A Q&A source is a Markdown file with the question as its heading, so that each chunk has the question.
FILE_NAME, CONTENT_TYPE = "question.md", "text/markdown"


def check_question(text: str, limits: Limits, path: str = "question") -> str:
    """Return the question as one line; raises `invalid_request` if it is blank or too long."""
    words = "".join(character if character.isprintable() else " " for character in text).split()
    question = " ".join(words)
    if not question:
        raise refusal(path, "must not be blank.")
    if len(question) > limits.title_characters:
        raise refusal(path, f"has {len(question)} characters; the limit is {limits.title_characters}.")
    return question


def check_answer(text: str) -> str:
    """Raise `invalid_request` if the answer has no letter or digit, since no search could find it."""
    if not any(map(str.isalnum, text)):
        raise refusal("answer", "must not be blank.")
    return text


def question_text(question: str, answer: str, alternates: Sequence[str]) -> str:
    """Build the Markdown: question, alternate questions, answer."""
    asked = "".join(f"- {alternate}\n" for alternate in alternates)
    return f"# {question}\n\n{asked}\n{answer}\n"
