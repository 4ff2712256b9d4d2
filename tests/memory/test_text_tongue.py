"""Which kind of tongue a prompt is in."""

from __future__ import annotations

import pytest

from memory.text.tongue import tongue


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Which port does the staging database use?", "english"),
        ("redis port staging", "english"),
        ("", "english"),
        ("`def f(x): return x` ValueError 404", "english"),
        ("Does the naïve café parser handle it?", "english"),
        ("What does 端口 mean in this message?", "english"),
        ("Auf welchem Port läuft die Datenbank?", "latin"),
        ("Womit werden Spalten im Export getrennt", "latin"),
        ("¿Cómo quito una mancha?", "latin"),
        ("预发环境的 Redis 用哪个端口", "script"),
        ("ステージングのポートは何番", "script"),
        ("Какой порт слушает база данных", "script"),
        ("ما هو منفذ قاعدة البيانات", "script"),
    ],
)
def test_it_tells_english_from_other_tongues_and_other_scripts(text: str, kind: str) -> None:
    assert tongue(text) == kind
