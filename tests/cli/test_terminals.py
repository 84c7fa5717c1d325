"""Output and prompts on a pseudo-terminal of a given width, compared with output to a pipe."""

import re
from pathlib import Path

from tests.acceptance.calls import make_bucket
from tests.acceptance.installations import Installation
from tests.cli.terminals import on_terminal
from tests.samples import make_pdf

BROKEN = "%PDF-1.7\nnothing"


def _upload(installation: Installation, name: str, bucket: str, words: str = "Words about quays.") -> str:
    (installation.root / name).write_text(words)
    (item,) = installation.svc("upload", name, "-b", bucket, "--json").json["items"]
    return str(item["source_id"])


def test_terminal_shows_a_progress_bar_colours_and_the_next_command(shared_installation: Installation) -> None:
    (shared_installation.root / "a.md").write_text("Words about ferries.")
    code, shown = on_terminal(shared_installation, "upload", "a.md", "-b", "seen")
    words = ("indexing", "\x1b[32mready\x1b[0m", "svc search")
    assert code == 0
    assert [each for each in words if each not in shown] == []
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")


def test_status_watch_ends_when_all_sources_are_settled(shared_installation: Installation) -> None:
    (shared_installation.root / "c.md").write_text("Words about quays.")
    shared_installation.svc("upload", "c.md", "-b", "watched", "--wait", "accepted")
    code, shown = on_terminal(shared_installation, "status", "-b", "watched", "--watch")
    assert code == 0
    assert "watched" in shown


def test_status_watch_leaves_one_screen_that_begins_with_what_failed(shared_installation: Installation) -> None:
    with shared_installation.client() as client:
        for number in range(45):
            make_bucket(client, f"screen-{number}")
    _upload(shared_installation, "broken.pdf", "screen-44", BROKEN)
    shown = on_terminal(shared_installation, "status", "--watch", LINES="40")[1].rpartition("\x1b[2K")[2]
    assert shown.count("\n") <= 39
    assert "screen-44" in "".join(shown.splitlines()[:4])
    assert shared_installation.svc("status", "--watch").stdout.count("\n") > 45, "a pipe gets everything"


def test_login_prompt_does_not_show_the_key(shared_installation: Installation) -> None:
    login = ("auth", "login")
    code, shown = on_terminal(shared_installation, *login, after="API key", typed=f"{shared_installation.key}\n")
    assert code == 0
    assert shared_installation.key not in shown
    assert shared_installation.svc("auth", "logout").exit == 0
    code, shown = on_terminal(shared_installation, *login, after="API key", typed="\x04")
    assert code == 3
    assert "Nothing was stored." in shown
    assert "--debug" not in shown


def test_only_yes_deletes_a_source(shared_installation: Installation) -> None:
    source_id = _upload(shared_installation, "kept.md", "kept")
    for answer in ("n\n", "\n", "maybe\n"):
        code, shown = on_terminal(shared_installation, "source", "rm", "kept.md", "-b", "kept", typed=answer)
        assert code == 3, answer
        assert "Nothing was changed" in shown, answer
        assert f"delete kept.md ({source_id}) from every bucket? [y/N]" in shown
    code, shown = on_terminal(shared_installation, "source", "rm", source_id, "--no-input", typed="y\n")
    assert code == 2
    assert "--force" in shown
    assert shared_installation.svc("source", "show", source_id).exit == 0
    assert on_terminal(shared_installation, "source", "rm", source_id, typed="y\n")[0] == 0
    assert shared_installation.svc("source", "show", source_id).exit == 5


def test_several_buckets_are_deleted_after_one_question(shared_installation: Installation) -> None:
    for bucket in ("one", "two"):
        _upload(shared_installation, f"{bucket}.md", bucket)
    assert shared_installation.svc("bucket", "rm", "one", "nowhere", "--force").exit == 5
    code, shown = on_terminal(shared_installation, "bucket", "rm", "one", "two", "--wait", typed="yes\n")
    assert code == 0
    assert shown.count("[y/N]") == 1
    assert "one (1 source), two (1 source)" in shown
    assert {shared_installation.svc("bucket", "show", bucket).exit for bucket in ("one", "two")} == {5}


def test_confirmation_without_force_does_not_delete_a_source_or_agent_in_use(shared_installation: Installation) -> None:
    free, blocked = (_upload(shared_installation, f"{name}.md", "several", name) for name in ("free", "blocked"))
    creation = f"agent create sales --source {blocked} --surface widget --json"
    assert shared_installation.svc(*creation.split()).json["policy"]["source_ids"] == [blocked]
    code, shown = on_terminal(shared_installation, "source", "rm", free, blocked, typed="y\n", columns=200)
    assert code == 6
    assert f"Deleted before: {free}. Not deleted: {blocked}." in shown
    assert [shared_installation.svc("source", "show", each).exit for each in (free, blocked)] == [5, 0]
    for words in (("source", "rm", blocked), ("agent", "rm", "sales")):
        code, shown = on_terminal(shared_installation, *words, typed="y\n")
        assert code == 6, words
        assert "`--force` deletes it anyway" in shown, words
        assert shared_installation.svc(*words, "--force").exit == 0


def test_source_get_shows_text_on_a_terminal_and_refuses_binary_data(shared_installation: Installation) -> None:
    _upload(shared_installation, "plain.txt", "shown", "One\x1b[2Jtwo.\nThree.\n")
    (shared_installation.root / "plan.pdf").write_bytes(make_pdf(["The umber plan."]))
    assert shared_installation.svc("upload", "plan.pdf", "-b", "shown").exit == 0
    code, shown = on_terminal(shared_installation, "source", "get", "plain.txt", "-b", "shown", NO_COLOR="1")
    assert code == 0
    assert shown == "One\\x1b[2Jtwo.\nThree.\n"
    code, shown = on_terminal(shared_installation, "source", "get", "plan.pdf", "-b", "shown")
    assert code == 2
    assert "%PDF" not in shown
    assert "-o FILE" in shown


def test_the_log_is_readable_on_a_terminal_and_json_elsewhere(shared_installation: Installation) -> None:
    code, shown = on_terminal(shared_installation, "daemon", "logs", "-n", "3", NO_COLOR="1")
    assert code == 0
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \w+ +  ?\S", line) for line in shown.splitlines()), shown
    piped = shared_installation.svc("daemon", "logs", "-n", "3")
    assert all(line.startswith('{"ts":') for line in piped.stdout.splitlines())


def test_tables_fit_the_terminal(shared_installation: Installation) -> None:
    long = Path("guides", "very", "deep", "folder", "exit-codes-of-the-command-line.md")
    (shared_installation.root / long).parent.mkdir(parents=True, exist_ok=True)
    _upload(shared_installation, str(long), "wide")
    _upload(shared_installation, "wide-broken.pdf", "wide", BROKEN)
    rows = [(words, columns) for words in ("status", "status -b wide", "bucket ls") for columns in (60, 120)]
    for words, columns in [*rows, ("source ls -b wide", 120), ("source ls -b wide", 60)]:
        code, shown = on_terminal(shared_installation, *words.split(), columns=columns, NO_COLOR="1")
        assert code == 0, (words, shown)
        assert max(map(len, shown.splitlines())) <= columns, (words, shown)
    shortened = re.findall(r"^src_\w+", shown, re.MULTILINE)
    assert len(set(shortened)) == 2
    assert all(shared_installation.svc("source", "show", start, "-b", "wide").exit == 0 for start in shortened)


def test_bucket_with_a_failed_source_is_listed_first_and_in_red(shared_installation: Installation) -> None:
    shared_installation.svc("bucket", "create", "a-first")
    _upload(shared_installation, "z.pdf", "z-failed", BROKEN)
    store = shared_installation.svc("bucket", "show", "z-failed", "--json").json["bucketStore"]
    assert store["failed_member_count"] == 1
    for words in (("status",), ("bucket", "ls")):
        shown = on_terminal(shared_installation, *words)[1]
        failed, other = [line for line in shown.splitlines() if "a-first" in line or "z-failed" in line]
        assert "z-failed" in failed
        assert failed[:6] == "\x1b[31m1"
        assert not other.startswith("\x1b")


def test_search_over_several_buckets_names_them_folds_equal_passages_and_highlights_words(
    shared_installation: Installation,
) -> None:
    text = "Whoever is away tells the desk. " * 9 + "The vermilion rule grants ninety days. " + "Others wait. " * 20
    for bucket, name in (("fold-a", "leave.md"), ("fold-b", "copy.md")):
        _upload(shared_installation, name, bucket, text)
    code, shown = on_terminal(shared_installation, "search", "vermilion rule", "-b", "fold-a", "-b", "fold-b")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert code == 0
    assert re.search(r"^1\. (leave|copy)\.md, line 1, in fold-[ab]", plain, re.MULTILINE)
    assert re.search(r"^   also in (leave|copy)\.md, line 1, in fold-[ab]$", plain, re.MULTILINE)
    assert plain.count("grants ninety days") == 1
    assert "\x1b[33mvermilion" in shown
    assert max(map(len, plain.splitlines())) <= 80
    one = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(shared_installation, "search", "vermilion", "-b", "fold-a")[1])
    assert "in fold-a" not in one


def test_an_answer_is_wrapped_and_its_quotes_are_whole(shared_installation: Installation) -> None:
    sentence = (
        "The cerulean allowance for people who move to another town because of their work is paid for twelve months, "
        "in the currency of the country to which they have moved, and ends when they move again."
    )
    _upload(shared_installation, "move.md", "wrapped", sentence)
    words = ("ask", "How long is the cerulean allowance paid?", "-b", "wrapped")
    for more in ((), ("--no-stream",)):
        code, shown = on_terminal(shared_installation, *words, *more)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert code == 0
        assert max(map(len, plain.splitlines())) <= 80, plain
        assert f"“{sentence}”" in " ".join(plain.split())
    assert f"“{sentence}”" in shared_installation.svc(*words).stdout
