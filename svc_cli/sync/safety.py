"""How much may leave the bucket at a time, and whether the folder is there at all. Pure.

A folder that is not mounted, was emptied or moved away looks like one whose files were all deleted. Removing is the one
thing that a sync can't take back, so each doubt is a no; `doubts` has those about single files.
"""

from dataclasses import dataclass

from svc_cli.errors import SafetyStop, UsageError

#: Up to so many files are never too many for a share.
FEW = 10


@dataclass(frozen=True, slots=True)
class MaxDelete:
    """The most that one run may remove: a number of files, or a share of those the mapping owns."""

    files: int | None = None
    percent: int | None = None

    @classmethod
    def parse(cls, text: str) -> "MaxDelete":
        """`N` or `P%`. Raises UsageError."""
        number = text.strip().removesuffix("%")
        if not (number.isascii() and number.isdigit()) or (text.strip().endswith("%") and int(number) > 100):
            raise UsageError(f"--max-delete takes a number of files or a share such as 25%, not {text!r}.")
        return cls(percent=int(number)) if text.strip().endswith("%") else cls(files=int(number))

    def allows(self, gone: int, owned: int) -> bool:
        """Whether so many of so many may go."""
        if self.files is not None:
            return gone <= self.files
        return gone <= FEW or gone * 100 <= owned * (self.percent or 0)

    def __str__(self) -> str:
        return f"{self.percent} %" if self.files is None else f"{self.files} files"


DEFAULT_MAX_DELETE = MaxDelete(percent=25)


def too_many(gone: int, owned: int, limit: MaxDelete) -> SafetyStop:
    """What to say where more would go than one run may remove."""
    return SafetyStop(
        f"{gone} of {owned} files are gone, more than {limit}; nothing was removed.",
        hint=f"if that is right, run `svc sync` with --max-delete {gone}.",
        details={"gone": gone, "owned": owned},
    )


def refuse_lost_root(folder: str, *, exists: bool, is_empty: bool, owned: int) -> None:
    """Raises SafetyStop where the folder is missing or empty, and was not: it may only be unmounted."""
    if not owned or (exists and not is_empty):
        return
    what = "has nothing to sync" if exists else "is missing"
    raise SafetyStop(
        f"{folder} {what}, but {owned} files of it are in the bucket; nothing was changed.",
        hint="mount it or bring it back; to give the files up, take them out with `svc source rm`.",
        details={"folder": folder, "owned": owned},
    )
