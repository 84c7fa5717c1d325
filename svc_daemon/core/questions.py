"""Questions and answers: their fields as people send them, and the text that is searched."""

from collections.abc import Sequence

from svc_daemon.core.refusals import refusal
from svc_daemon.settings import Limits

#: How the text is kept: the question is the heading under which each piece of the answer is found.
FILE_NAME, CONTENT_TYPE = "question.md", "text/markdown"


def check_question(text: str, limits: Limits, path: str = "question") -> str:
    """The question in one line; raises `invalid_request` for one that is blank or too long."""
    words = "".join(character if character.isprintable() else " " for character in text).split()
    question = " ".join(words)
    if not question:
        raise refusal(path, "must not be blank.")
    if len(question) > limits.title_characters:
        raise refusal(path, f"has {len(question)} characters; the limit is {limits.title_characters}.")
    return question


def check_answer(text: str) -> str:
    """Raises `invalid_request` for an answer without a letter or digit, which could never be found."""
    if not any(map(str.isalnum, text)):
        raise refusal("answer", "must not be blank.")
    return text


def question_text(question: str, answer: str, alternates: Sequence[str]) -> str:
    """Markdown with the question as its heading, then the other ways to ask it, then the answer."""
    asked = "".join(f"- {alternate}\n" for alternate in alternates)
    return f"# {question}\n\n{asked}\n{answer}\n"
