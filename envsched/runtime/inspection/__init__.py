"""What is wrong with a pool: its environments and checks run once, its texts read."""

from envsched.runtime.inspection.inspect import inspect_pool
from envsched.runtime.inspection.report import EnvironmentReport, Finding, PoolReport, Severity, TaskReport

__all__ = ["EnvironmentReport", "Finding", "PoolReport", "Severity", "TaskReport", "inspect_pool"]
