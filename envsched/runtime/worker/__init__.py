"""What runs inside a worker: a fresh interpreter that forks one process per episode. Standard library only.

The worker loads this folder under the name ``envsched_worker``, so nothing of the trainer's environment comes along;
the parent imports ``frames`` from it, and nothing else that executes.
"""
