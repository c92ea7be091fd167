"""Random valid configurations for the property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from laya_desktop.config.schema import ModelConfig, NodeConfig, RouteConfig, ServerConfig, UpstreamConfig

_TRAPS = st.sampled_from(
    ["on", "yes", "No", "0o10", "010", "1_000", "12:30:00", "1e3", "null", "~", "2026-12-01", "=", "<<", "- a", "a: b",
     "#x", "a #b", "'", '"', "\\", "[x]", "{x}", "&a", "*a", "!t", "%d", "@x", "`", "?", ".5", "0x1F", "😀", "é\u00a0é"]
)  # fmt: skip


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 128 and text == text.strip() and text.isprintable()


names = st.one_of(_TRAPS, st.text(min_size=1, max_size=12)).filter(_is_name)
seconds = st.one_of(
    st.integers(1, 10**8).map(float),
    st.floats(1e-6, 1e8, allow_nan=False),
    st.integers(1, 10**6).map(lambda n: n / 1000),
)
sizes = st.one_of(st.integers(1, 2**45), st.integers(1, 4096).map(lambda n: n * 1024**2))
fractions = st.floats(0, 1, exclude_min=True, allow_nan=False)
tokens = st.from_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,10}", fullmatch=True)
printable = st.one_of(_TRAPS, st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=12))
paths = st.one_of(
    _TRAPS, st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
).filter(lambda p: p.strip("/.") != "" and not p.startswith("package:"))
rules = st.from_regex(r"/[a-z][a-z0-9/._%~-]{0,10}", fullmatch=True).filter(
    lambda p: p.split("/")[1] not in ("admin", "health", "metrics")
)


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


models = _some(
    device=st.sampled_from(["auto", "cpu", "gpu", "gpu:1"]),
    gpu_layers=st.one_of(st.just("auto"), st.integers(0, 100)),
    batch_size=st.integers(1, 256),
    max_seq_len=st.integers(16, 100_000),
    num_worker=st.one_of(st.just("auto"), st.integers(1, 64)),
    mem_fraction=st.none() | fractions,
    preload=st.booleans(),
    idle_unload=st.none() | seconds,
    queue=_some(policy=st.sampled_from(["fifo", "priority"]), max_waiting=st.integers(0, 9), max_wait=seconds),
    cache=_some(enabled=st.booleans(), max_bytes=sizes, ttl=seconds),
    path=paths,
)
upstreams = _some(
    api_key=st.one_of(st.none(), st.just("keyring:my box"), st.from_regex(r"[!-~]{1,9}", fullmatch=True)).filter(
        lambda k: k is None or not k.startswith("sha256:")
    ),
    health=st.none() | _some(path=rules, interval=seconds),
    connect_timeout=seconds,
)
servers = _some(
    port=st.integers(0, 65535),
    api_keys=st.lists(st.from_regex(r"[!-~]{1,9}", fullmatch=True), max_size=3),
    max_body=sizes,
    head_timeout=seconds,
)


@st.composite
def matches(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["path", "prefix", "regex"]))
    match: dict[str, Any] = {kind: draw(rules)}
    if kind == "regex":
        match["use_regex"] = True
    headers = draw(st.dictionaries(tokens, st.none() | printable, max_size=3))
    match["headers"] = {k: v for k, v in headers.items() if k.lower() not in {h.lower() for h in headers if h != k}}
    match |= draw(_some(methods=st.lists(st.sampled_from(["GET", "POST"]), max_size=2), model=st.none() | printable))
    return match


@st.composite
def configs(draw: st.DrawFn) -> NodeConfig:
    owners = draw(st.lists(names, max_size=5, unique=True))
    cut = draw(st.integers(0, len(owners)))
    routes: list[RouteConfig] = []
    if owners:
        for name in draw(st.lists(names, max_size=4, unique=True)):
            extra = draw(_some(enabled=st.booleans(), priority=st.sampled_from(["batch", "normal"]), timeout=seconds))
            routes.append(
                RouteConfig.model_validate(
                    {"name": name, "match": draw(matches()), "target": draw(st.sampled_from(owners)), **extra}
                )
            )
    return NodeConfig(
        server=ServerConfig.model_validate(draw(servers)),
        models=tuple(ModelConfig.model_validate({"path": "m.gguf", **draw(models), "name": n}) for n in owners[:cut]),
        upstreams=tuple(
            UpstreamConfig.model_validate({"url": "http://h:1/v1", **draw(upstreams), "name": n}) for n in owners[cut:]
        ),
        routes=tuple(routes),
    )
