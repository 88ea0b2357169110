"""From a global batch to the sizes of one device. Letters: B tasks, G rollouts per task, W processes."""

from dataclasses import dataclass

from envsched.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Geometry:
    """B * G = world_size * device_batch * accumulation rollouts per optimizer step, whatever the world size."""

    batch_size: int
    group_size: int
    world_size: int
    device_batch: int
    accumulation: int

    @property
    def num_rollouts(self) -> int:
        return self.batch_size * self.group_size

    @property
    def rank_rollouts(self) -> int:
        return self.num_rollouts // self.world_size


def divide(batch_size: int, group_size: int, world_size: int, max_device_batch: int) -> Geometry:
    """Split B * G rollouts over W processes.

    The device batch is the largest divisor of a rank's share that is at most ``max_device_batch``.

    Raises:
        ConfigError: the rollouts don't divide; names the nearest batch sizes and numbers of processes that do.
    """
    rollouts = batch_size * group_size
    if rollouts % world_size:
        raise ConfigError(
            f"batch_size {batch_size} x group_size {group_size} = {rollouts} rollouts don't divide over {world_size} processes; "
            f"nearest that do: batch_size {_nearest_batches(batch_size, group_size, world_size)}, "
            f"or {_nearest_worlds(rollouts, world_size)} processes"
        )
    share = rollouts // world_size
    device_batch = max(size for size in range(1, min(share, max_device_batch) + 1) if share % size == 0)
    return Geometry(batch_size, group_size, world_size, device_batch, share // device_batch)


def _nearest_batches(batch_size: int, group_size: int, world_size: int) -> str:
    fits = [size for size in range(1, batch_size + world_size + 1) if size * group_size % world_size == 0]
    below = max((size for size in fits if size < batch_size), default=None)
    above = min(size for size in fits if size > batch_size)
    return f"{below} or {above}" if below else str(above)


def _nearest_worlds(rollouts: int, world_size: int) -> str:
    below = max(size for size in range(1, world_size) if rollouts % size == 0)
    above = next((size for size in range(world_size + 1, rollouts + 1) if rollouts % size == 0), None)
    return f"{below} or {above}" if above else str(below)
