"""GRPO training with scheduled tasks.

accelerate launch train.py --config configs/cpu.yaml --run-dir runs/mine
torchrun --nproc_per_node 2 train.py --config configs/cpu.yaml --run-dir runs/two
"""

import argparse
import os
import sys
import warnings
from typing import Any

from envsched.config import Config, load_config
from envsched.errors import EnvschedError
from envsched.wording import counted


def main(argv: list[str] | None = None, reward: Any = None) -> int:
    """Parse flags, lay them over the config, prepare or train; ``reward`` replaces the share of passed checks."""
    flags = _parser().parse_args(argv)
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TRACKIO_DIR", os.path.join(flags.run_dir, "logs"))  # read when TRL is imported
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")  # names TRL passes on; nothing a user can change
    try:
        config = _config(flags)
        if flags.prepare_only:
            os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # the only model here is a small text encoder
            from envsched.train.preparation import prepare

            batch = prepare(config, flags.run_dir)
            print(f"batch of step 0: {counted(len(batch.picks), 'task')}, written to {flags.run_dir}/selector/task_manifest.step_0.json")
        else:
            from envsched.evaluate.validation import validation_of
            from envsched.train.run import train

            with validation_of(config.train) as validation:
                options = {"resume": flags.resume, "accept_pool_change": flags.accept_pool_change}
                train(config, flags.run_dir, **options, reward=reward, validation=validation)
    except EnvschedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or flags.run_dir}: {error.strerror or error}; mend it, then --resume goes on", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; --resume goes on with {flags.run_dir} from its last checkpoint", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", help="YAML file of settings that differ from the defaults")
    parser.add_argument("--run-dir", required=True, help="where everything of this run is kept")
    parser.add_argument("--pool", help="bundled, a folder in EnvScaler's format, or a JSONL file with code; with --prepare-only any pool")
    parser.add_argument("--scheduler", help="envsched, random, or another baseline")
    parser.add_argument("--model-path", help="folder of the policy")
    parser.add_argument("--max-steps", type=int, help="optimizer steps")
    parser.add_argument("--seed", type=int, help="seed of every generator")
    parser.add_argument("--eval-every", type=int, help="steps between scores on BFCL's dialogues; 0: never")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any setting, as half_life=24")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --run-dir")
    parser.add_argument("--accept-pool-change", action="store_true", help="with --resume: go on with a pool that changed, keep what stayed")
    parser.add_argument("--require-sandbox", action="store_true", help="refuse to run unless every wall around environments stands")
    parser.add_argument("--prepare-only", action="store_true", help="write config and first batch, then stop; --resume trains on")
    return parser


def _config(flags: argparse.Namespace) -> Config:
    named = {"pool": flags.pool, "scheduler": flags.scheduler, "model": flags.model_path, "max_steps": flags.max_steps, "seed": flags.seed}
    named["eval_every"] = flags.eval_every
    given = [f"train.{name}={value}" for name, value in named.items() if value is not None]
    given += ["runtime.sandbox=require"] if flags.require_sandbox else []
    return load_config(flags.config, [*given, *flags.set])


if __name__ == "__main__":
    sys.exit(main())
