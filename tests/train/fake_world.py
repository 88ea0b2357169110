"""Build TRL's real arguments as rank 0 of W processes would, without W processes; prints JSON.

python -m tests.train.fake_world FOLDER CONFIG... WORLD_SIZE...
"""

import json
import os
import sys
from pathlib import Path

import torch.distributed
from accelerate.state import AcceleratorState, PartialState
from torch.testing._internal.distributed.fake_pg import FakeStore

from envsched.config import load_config
from envsched.train.arguments import grpo_arguments
from envsched.train.preparation import geometry_of

NAMES = (
    *("world_size", "generation_batch_size", "num_generations", "steps_per_generation", "gradient_accumulation_steps"),
    *("learning_rate", "epsilon", "beta", "max_steps", "save_steps", "use_vllm", "vllm_mode", "chat_template_kwargs"),
)


def main(folder, paths, world_size):
    if world_size > 1:
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world_size), MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
        torch.distributed.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    for path in paths:
        config = load_config(path, ["train.device=cpu"])
        args = grpo_arguments(config, geometry_of(config, world_size), folder / "checkpoint", folder / "logs")
        print(json.dumps({name: getattr(args, name) for name in NAMES}))
    if world_size > 1:
        torch.distributed.destroy_process_group()
    AcceleratorState._reset_state()
    PartialState._reset_state()


if __name__ == "__main__":
    words = sys.argv[2:]
    for number in [int(word) for word in words if word.isdigit()]:
        main(Path(sys.argv[1]), [word for word in words if not word.isdigit()], number)
