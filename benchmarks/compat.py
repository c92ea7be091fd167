"""Do other people's clients work unchanged against a node? Installs them into a throwaway folder and asks.

    python benchmarks/compat.py http://127.0.0.1:5292 MODEL [--folder DIR]

Each client runs in a process of its own; it passes where a whole answer and a streamed one came. Nothing is installed
into the environment that runs this.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

_OPENAI = """
from openai import OpenAI, NotFoundError
client = OpenAI(base_url=URL + "/v1", api_key="none")
ask = dict(model=MODEL, messages=[{"role": "user", "content": "Say hello."}], max_tokens=8)
assert MODEL in [m.id for m in client.models.list()]
whole = client.chat.completions.create(**ask)
assert whole.choices[0].message.content and whole.usage.completion_tokens > 0
parts = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
assert "".join(c.choices[0].delta.content or "" for c in parts if c.choices) and parts[-1].usage.total_tokens > 0
response = client.responses.create(model=MODEL, input="Say hello.", max_output_tokens=8)
assert response.output_text
assert len(client.embeddings.create(model=MODEL, input=["one", "two"]).data) == 2
try:
    client.chat.completions.create(**{**ask, "model": "no-such-model"})
    raise SystemExit("an unknown model was answered")
except NotFoundError as error:
    assert "no-such-model" in str(error)
"""
_ANTHROPIC = """
from anthropic import Anthropic
client = Anthropic(base_url=URL, api_key="none")
ask = dict(model=MODEL, max_tokens=8, messages=[{"role": "user", "content": "Say hello."}])
whole = client.messages.create(**ask)
assert whole.content[0].text and whole.usage.output_tokens > 0
with client.messages.stream(**ask) as stream:
    assert "".join(stream.text_stream)
assert client.messages.count_tokens(model=MODEL, messages=ask["messages"]).input_tokens > 0
"""
_LANGCHAIN = """
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
chat = ChatOpenAI(base_url=URL + "/v1", api_key="none", model=MODEL, max_tokens=8)
assert chat.invoke("Say hello.").content
assert "".join(part.content for part in chat.stream("Say hello."))
embeddings = OpenAIEmbeddings(base_url=URL + "/v1", api_key="none", model=MODEL, dimensions=4,
                              check_embedding_ctx_length=False)  # else OpenAI's own token ids are sent
assert [len(v) for v in embeddings.embed_documents(["one", "two"])] == [4, 4]
"""
_LITELLM = """
import litellm
ask = dict(model="openai/" + MODEL, api_base=URL + "/v1", api_key="none", max_tokens=8,
           messages=[{"role": "user", "content": "Say hello."}])
assert litellm.completion(**ask).choices[0].message.content
assert "".join(part.choices[0].delta.content or "" for part in litellm.completion(**ask, stream=True))
assert len(litellm.embedding(model="openai/" + MODEL, input=["one"], api_base=URL + "/v1", api_key="none").data) == 1
"""
_LLM = """
from llm.default_plugins.openai_models import Chat
model = Chat(MODEL, model_name=MODEL, api_base=URL + "/v1")
model.key = "none"
assert model.prompt("Say hello.", stream=False, max_tokens=8).text()
assert "".join(model.prompt("Say hello.", stream=True, max_tokens=8))
"""
_NODE_OPENAI = """
import OpenAI from "openai";
const model = process.env.LAYA_MODEL;
const client = new OpenAI({baseURL: process.env.LAYA_URL + "/v1", apiKey: "none"});
const ask = {model, messages: [{role: "user", content: "Say hello."}], max_tokens: 8};
const whole = await client.chat.completions.create(ask);
if (!whole.choices[0].message.content) throw new Error("empty answer");
let text = "";
for await (const part of await client.chat.completions.create({...ask, stream: true}))
  text += part.choices[0]?.delta?.content ?? "";
if (!text) throw new Error("empty stream");
const response = await client.responses.create({model, input: "Say hello.", max_output_tokens: 8});
if (!response.output_text) throw new Error("empty response");
const vectors = await client.embeddings.create({model, input: ["one", "two"], dimensions: 4});
if (vectors.data.length !== 2 || vectors.data[0].embedding.length !== 4) throw new Error("wrong vectors");
const refused = await client.chat.completions.create({...ask, model: "no-such-model"}).catch((error) => error);
if (refused.status !== 404) throw new Error("an unknown model was answered");
"""
PYTHON_CLIENTS = {
    "openai": ("openai", _OPENAI),
    "anthropic": ("anthropic", _ANTHROPIC),
    "langchain-openai": ("langchain_openai", _LANGCHAIN),
    "litellm": ("litellm", _LITELLM),
    "llm": ("llm", _LLM),
}
"""Package on PyPI: the module that it brings, and the program that tries it."""


def run_python(python: str, program: str, url: str, model: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a client's program with an interpreter that has it; ``home`` takes whatever it stores."""
    text = f"URL, MODEL = {url!r}, {model!r}\n{program}"
    env = os.environ | {"HOME": str(home), "LLM_USER_PATH": str(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return subprocess.run([python, "-c", text], capture_output=True, text=True, timeout=120, env=env, check=False)


def run_node(folder: Path, url: str, model: str) -> subprocess.CompletedProcess[str]:
    """Run the npm package's program in the folder that has it."""
    (folder / "try.mjs").write_text(_NODE_OPENAI)
    env = os.environ | {"LAYA_URL": url, "LAYA_MODEL": model}
    command = ["node", "try.mjs"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=env, check=False)


def main() -> int:
    """Install, try, report; 1 where any client failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--folder", type=Path, help="install here, or use what is there (default: a temporary folder)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        python, npm = _python(folder / "venv"), install_npm(folder / "npm")
        results = {
            name: run_python(python, program, args.url, args.model, Path(temporary))
            for name, (_, program) in PYTHON_CLIENTS.items()
        }
        results["openai (npm)"] = run_node(npm, args.url, args.model)
    for name, result in results.items():
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"{name:18} {'works' if result.returncode == 0 else 'FAILS: ' + last}")
    return int(any(result.returncode for result in results.values()))


def _python(folder: Path) -> str:
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PYTHON_CLIENTS], check=True)
    return str(python)


def install_npm(folder: Path) -> Path:
    """A folder with the npm package ``openai``; raises CalledProcessError where it cannot be had."""
    if not (folder / "node_modules" / "openai").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "openai"], cwd=folder, check=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
