"""A user's own scheduler: five verbs, no envsched inside. It walks through the pool, B tasks at a time."""

from envsched.types import Batch, Lane, Pick


class Rotation:
    def __init__(self, pool, batch_size):
        self.pool, self.batch_size = pool, batch_size
        self.seen = []

    def select(self, step):
        rows = [(step * self.batch_size + i) * 37 % len(self.pool) for i in range(self.batch_size)]
        tasks = [self.pool.tasks[row] for row in rows]
        return Batch(step, tuple(Pick(task.key, task.environment, Lane.COVERAGE, 0.0) for task in tasks))

    def observe(self, records):
        self.seen += [[record.task, record.step, list(record.rewards)] for record in records]

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = list(state["seen"])

    def metrics(self):
        return {"rotation/seen": float(len(self.seen))}
