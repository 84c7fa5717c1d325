"""The recognisers of text: which one is used, and the one of the extra `ocr`.

A recogniser is a function without arguments that loads a model and returns a function from a picture to its lines. It
runs in a confined child, once for each document.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from svc_daemon.core.text.document_formats import OCR
from svc_daemon.wire.light.extras import install_command

if TYPE_CHECKING:
    from svc_daemon.extract.scans.pictures import Picture

#: The recogniser of the extra.
_RAPID = f"{__name__}:load_rapid"
#: Libraries of the extra.
_NEEDED = ("rapidocr", "onnxruntime", "cv2", "PIL", "numpy")


class Line(NamedTuple):
    """A line of text in a picture."""

    text: str
    #: 0 to 1.
    confidence: float
    #: Its corners, clockwise from the one where the text begins at the top, in pixels from the picture's top left.
    box: Sequence[Sequence[float]]


Recognize = Callable[["Picture"], Sequence[Line]]


class RecognizerChoice(NamedTuple):
    """Which recogniser is used."""

    #: The function that loads it, as `module:name`; empty if none is used.
    name: str
    #: Why none is used, and the way out; empty if one is.
    reason: str = ""


def choose(setting: str) -> RecognizerChoice:
    """Choose the recogniser for the setting `SVC_OCR`: `auto`, `off`, or a function as `module:name`."""
    if setting == "off":
        return RecognizerChoice("", "Text recognition is turned off (SVC_OCR=off).")
    if setting != "auto":
        return RecognizerChoice(setting)
    if all(find_spec(each) is not None for each in _NEEDED):
        return RecognizerChoice(_RAPID)
    return RecognizerChoice("", f"To read scans and pictures, run {install_command(OCR)} where the service runs.")


def load(name: str) -> Recognize:
    """Load the recogniser with this name, `module:name`."""
    module, _, function = name.partition(":")
    return cast("Callable[[], Recognize]", getattr(import_module(module), function))()


def load_rapid() -> Recognize:
    """Load the models of rapidocr, which are in its package: nothing is downloaded."""
    # Otherwise, onnxruntime reports to its makers. It reads this when it is loaded.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import cv2  # noqa: PLC0415 - only where text is recognised
    import rapidocr  # noqa: PLC0415

    cv2.setNumThreads(1)
    models = Path(rapidocr.__file__).parent / "models"
    engine = rapidocr.RapidOCR(
        params={
            # The classifier of angles turns upright lines upside down. `layout` tries directions instead.
            "Global.use_cls": False,
            "Global.log_level": "critical",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            # With the paths of the models, the library looks for no others.
            "Det.model_path": str(models / "PP-OCRv6_det_small.onnx"),
            "Rec.model_path": str(models / "PP-OCRv6_rec_small.onnx"),
            # One line at a time takes as long as six, and two thirds of the memory.
            "Rec.rec_batch_num": 1,
        }
    )

    def recognize(picture: "Picture") -> list[Line]:
        # The models were trained on blue, green and red.
        found = engine(picture[:, :, ::-1])
        if found.txts is None or found.boxes is None:
            return []
        lines = zip(found.txts, found.scores, found.boxes, strict=True)
        return [Line(text, float(score), [tuple(map(float, corner)) for corner in box]) for text, score, box in lines]

    return recognize
