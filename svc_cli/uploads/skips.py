"""Why files are left out: the codes behind the words of a reason."""

import re

from svc_daemon.wire.file_names import NameFlaw

UNREADABLE_TYPE = "type can't be read"
SPELLED_TWICE = "another file has this name, spelled with other code points"

#: Words of a reason up to its colon, and its code in JSON.
CODES = {
    "dotfile": "dotfile",
    "ignored": "ignored",
    "not included": "not_included",
    "link": "link",
    "link out of the folder": "link_outside",
    "link in a circle": "link_loop",
    "link leads nowhere": "link_broken",
    "not a regular file": "not_a_file",
    "empty": "empty",
    "too large": "too_large",
    "path is too long": "path_too_long",
    UNREADABLE_TYPE: "type_unreadable",
    "can't be read": "unreadable",
    NameFlaw.NO_NAME: "name_invalid",
    NameFlaw.NOT_UTF8: "name_not_utf8",
    NameFlaw.TOO_LONG: "name_too_long",
    NameFlaw.INVISIBLE: "name_invisible",
    SPELLED_TWICE: "name_taken",
    "left out with its folder": "folder_left_out",
}


def code_of(reason: str) -> str:
    """The code of a reason; one that is not listed is its own words."""
    words = reason.partition(":")[0]
    return CODES.get(words) or re.sub(r"\W+", "_", words).strip("_").lower()
