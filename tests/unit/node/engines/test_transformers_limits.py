"""Fields that the PyTorch engine does not know are refused once they are set, and only then."""

from __future__ import annotations

import msgspec

from laya_desktop.node.engines.base import Generate, Sampling
from laya_desktop.node.engines.transformers_limits import refuse_unknown


class _Newer(Sampling, frozen=True):
    mirostat: int = 0
    breakers: list[str] = msgspec.field(default_factory=list)


class _Request(Generate, frozen=True, tag=True):
    grammar: str | None = None


def test_everything_known_passes() -> None:
    sampling = Sampling(0.1, 1, 0.2, 0.3, 1.1, 0.4, 0.5, 7, {1: 2.0})
    assert refuse_unknown(Generate("r", prompt="x", max_tokens=1, stop=("a",), sampling=sampling, tools=[{}])) is None
    assert refuse_unknown(_Request("r", prompt="x", sampling=_Newer())) is None


def test_a_newer_field_is_refused_by_name() -> None:
    refused = refuse_unknown(_Request("r", prompt="x", grammar="root ::= [a-z]"))
    assert refused is not None
    assert (refused.param, refused.status) == ("grammar", 400)
    assert "grammar" in refused.message
    for newer, name in ((_Newer(mirostat=2), "mirostat"), (_Newer(breakers=["."]), "breakers")):
        refused = refuse_unknown(Generate("r", prompt="x", sampling=newer))
        assert refused is not None
        assert refused.param == name
