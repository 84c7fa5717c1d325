"""A tiny model, installed once for all tests that only use it."""

import pytest

from svc_daemon.embed.installed_models import InstalledModel, ModelFolder
from svc_daemon.embed.installing import install
from tests.embed.models import write_model


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    root = tmp_path_factory.mktemp("tiny")
    folder = ModelFolder(root / "models")
    install(folder, str(write_model(root / "tiny")), lambda: "2026-01-01T00:00:00.000Z", lambda _: None)
    return folder


@pytest.fixture
def tiny_model(tiny_folder: ModelFolder) -> InstalledModel:
    return tiny_folder.get()
