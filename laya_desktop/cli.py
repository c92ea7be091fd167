"""The command line: arguments and subcommands. Imports of a subcommand's parts wait until it is chosen.

Exit codes: 0 fine, 1 the answer is no (invalid configuration, failed demo), 2 wrong use.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from laya_desktop import __version__
from laya_desktop.errors import LayaError

if TYPE_CHECKING:
    from laya_desktop.node.parts import Overrides


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``laya-desktop``."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args and args[0] == "--laya-worker":  # frozen builds: the same executable is the worker
        from laya_desktop.app import run_worker

        return run_worker(args[1:])
    if args and args[0] == "--laya-bench":  # the helper process that makes a benchmark's load
        from laya_desktop.bench.helper import main as run_helper

        return run_helper()
    command = args[0] if args else ""
    try:
        if command in COMMANDS:
            return COMMANDS[command](args[1:])
        return _window(args)
    except LayaError as error:
        print(f"laya-desktop: {error}", file=sys.stderr)
        return 1


def _window(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="laya-desktop",
        description="A control panel for local AI inference. Without a subcommand: the window, with the node inside.",
        epilog=f"Subcommands: {', '.join(COMMANDS)}. 'laya-desktop SUBCOMMAND --help' explains each.",
    )
    parser.add_argument("config", nargs="?", type=Path, help="YAML file; default: the one in your config folder")
    parser.add_argument("--version", action="version", version=f"laya-desktop {__version__}")
    parser.add_argument("--hidden", action="store_true", help="start with the tray icon alone, where there is a tray")
    _add_overrides(parser)
    args = parser.parse_args(argv)
    from laya_desktop import app

    return app.run_window(args.config, _overrides(args), hidden=args.hidden)


def _serve(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="laya-desktop serve", description="The node alone, without a window.")
    parser.add_argument("config", type=Path)
    _add_overrides(parser)
    args = parser.parse_args(argv)
    from laya_desktop import app

    return app.run_serve(args.config, _overrides(args))


def _check(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="laya-desktop check", description="Validate a configuration.")
    parser.add_argument("config", type=Path)
    args = parser.parse_args(argv)
    from laya_desktop import commands

    code, lines = commands.check(args.config)
    for line in lines:
        print(line, file=sys.stderr if code else sys.stdout)
    return code


def _route(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="laya-desktop route", description="Which route a request would take, and why the others would not."
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("method")
    parser.add_argument("path")
    parser.add_argument("-H", "--header", action="append", default=[], metavar="'K: V'")
    parser.add_argument("--model", help="the body's model")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    headers = {}
    for header in args.header:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            parser.error(f"a header is written 'Name: value', not '{header}'")
        headers[name.strip().lower()] = value.strip()
    from laya_desktop import commands

    explanation = commands.explain(args.config, args.method.upper(), args.path, headers, args.model)
    if args.json:
        import msgspec

        print(msgspec.json.encode(explanation).decode())
    else:
        won = f"{explanation.winner} → {explanation.target_text}" if explanation.winner else "no route"
        print(f"{won}: {explanation.reason}")
        for candidate in explanation.candidates:
            if not candidate.won:
                print(f"  × {candidate.route}: {candidate.reason}")
    return 0 if explanation.winner else 1


def _estimate(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="laya-desktop estimate", description="Memory a model would take, against what is free."
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--device", default="auto", help="auto, cpu, gpu or gpu:N")
    parser.add_argument("--max-seq-len", type=int, default=4096)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--kv-type", default="f16", help="type of the KV cache: f16, q8_0, q4_0 …")
    parser.add_argument("--flash-attention", default="auto", help="auto, on or off")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    from laya_desktop import commands

    estimate = commands.estimate(
        args.file, args.device, args.max_seq_len, args.batch_size,
        kv_type=args.kv_type, flash_attention=args.flash_attention,
    )  # fmt: skip
    if args.json:
        import msgspec

        print(msgspec.json.encode(estimate).decode())
    else:
        print(commands.describe_estimate(estimate))
    return 0


def _key(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="laya-desktop key", description="Keys of upstreams, for 'api_key: keyring:NAME' in the configuration."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    setting = verbs.add_parser("set", help="store a key; it is typed without being shown, or read from standard input")
    setting.add_argument("name")
    verbs.add_parser("list", help="names of the stored keys")
    verbs.add_parser("delete", help="forget a key").add_argument("name")
    args = parser.parse_args(argv)
    from laya_desktop import commands

    store = commands.key_store(warn=lambda text: print(f"laya-desktop: {text}", file=sys.stderr))
    if args.verb == "list":
        print(*store.names(), sep="\n", end="\n" if store.names() else "")
        return 0
    if args.verb == "delete":
        found = store.delete(args.name)
        print(f"Deleted '{args.name}'." if found else f"There is no key '{args.name}'.", file=sys.stderr)
        return 0 if found else 1
    place = store.set(args.name, _read_key(args.name))
    print(f"Stored '{args.name}' {place}. Write api_key: \"keyring:{args.name}\".", file=sys.stderr)
    return 0


def _read_key(name: str) -> str:
    """From the terminal without echo, or the first line of standard input: never from the arguments, which all see."""
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"Key of '{name}': ")
    return sys.stdin.readline()


def _models(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="laya-desktop models", description="Models that are on this machine already, whoever downloaded them."
    )
    parser.add_argument("config", nargs="?", type=Path, help="YAML file whose model_folders are searched too")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    from laya_desktop import commands

    found = commands.find_models(args.config)
    if args.json:
        import msgspec

        print(msgspec.json.encode(found).decode())
    else:
        print(commands.describe_models(found))
    return 0


def _demo(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="laya-desktop demo", description="The bundled model on the embedded node; one real chat through a route."
    )
    parser.add_argument("--exit-after-reply", action="store_true", help="print one JSON line and exit")
    args = parser.parse_args(argv)
    from laya_desktop import demo

    if args.exit_after_reply:
        print(json.dumps(demo.reply(), ensure_ascii=False))
        return 0
    return demo.window()


def _bench(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="laya-desktop bench",
        description="Load a node over HTTP and print latency and throughput; --tune finds a model's best settings.",
        epilog="Exit codes: 0 every request was answered, 1 something failed, 2 wrong use, 130 cancelled. A key that "
        "the node asks for is read from LAYA_API_KEY.",
    )
    parser.add_argument("config", nargs="?", type=Path, help="YAML file; its node runs here, without a window")
    parser.add_argument("--url", help="measure this running node instead, e.g. http://127.0.0.1:5292")
    parser.add_argument("--scenario", choices=("routing", "small", "large", "all"), default="all")
    parser.add_argument("--model", metavar="M", help="default: the smallest file, and the largest")
    parser.add_argument("--concurrency", default="1,2,4,8", metavar="1,2,4,8", help="requests at once, level by level")
    parser.add_argument("--requests", type=_positive, metavar="N", help="a level; default 32, to the router 20000")
    parser.add_argument("--seconds", type=_seconds, metavar="S", help="a level, at most; default 20 (--tune: 8)")
    parser.add_argument("--prompt-tokens", type=_positive, default=64, metavar="N")
    parser.add_argument("--max-tokens", type=_positive, default=64, metavar="N", help="tokens of each answer")
    parser.add_argument("--rate", type=_seconds, metavar="R", help="requests a second to the router; default: no limit")
    parser.add_argument("--tune", metavar="MODEL", help="measure settings of this model instead")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", action="store_true", help="keep the result, so that the window shows it")
    args = parser.parse_args(argv)
    if args.config is None and args.url is None:
        parser.error("name a configuration, or a running node with --url")
    from laya_desktop import bench_command as command

    try:
        levels = command.levels([args.concurrency])
    except LayaError as error:
        parser.error(str(error))
    wanted = command.Wanted(
        args.config, args.url, args.scenario, args.model, levels, args.requests, args.seconds, args.prompt_tokens,
        args.max_tokens, args.rate, tune=args.tune, json=args.json, save=args.save,
    )  # fmt: skip
    return command.bench(command.with_key(wanted), command.tell_terminal, print)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to 1000000")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def _add_overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="listen here instead of server.host; never saved")
    parser.add_argument("--port", type=_port, help="listen here instead of server.port; never saved")
    parser.add_argument("--log-level", choices=("debug", "info", "warn", "error"))
    parser.add_argument("--mem-fraction", type=_fraction, metavar="0.7", help="ceiling of a device's memory")


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port; write a number from 0 to 65535")
    return int(text)


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a fraction; write a number above 0, at most 1, e.g. 0.7")
    return value


def _overrides(args: argparse.Namespace) -> Overrides:
    from laya_desktop.node.parts import Overrides

    names = ("host", "port", "log_level", "mem_fraction")
    return Overrides(**{name: getattr(args, name) for name in names})


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "serve": _serve,
    "check": _check,
    "route": _route,
    "estimate": _estimate,
    "models": _models,
    "bench": _bench,
    "demo": _demo,
    "key": _key,
}
