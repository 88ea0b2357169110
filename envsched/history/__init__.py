"""What was tried and what came of it: records in, an append-only log, statistics as pure functions of it."""

from envsched.history.group import GroupStatistics, group_statistics
from envsched.history.log import History, Visits
from envsched.history.record import append_records, parse_record, read_records, record_to_mapping
from envsched.history.statistics import Statistics, decay, decayed_exposures, exposures, statistics

__all__ = [
    "GroupStatistics",
    "History",
    "Statistics",
    "Visits",
    "append_records",
    "decay",
    "decayed_exposures",
    "exposures",
    "group_statistics",
    "parse_record",
    "read_records",
    "record_to_mapping",
    "statistics",
]
