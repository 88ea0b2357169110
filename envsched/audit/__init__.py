"""What a batch came from: manifests, input audits, and their re-derivation from a run directory."""

from envsched.audit.epochs import read_epochs, write_epochs
from envsched.audit.layout import RunLayout
from envsched.audit.manifest import make_manifest, read_manifest, write_manifest
from envsched.audit.rederive import AuditReport, audit_run
from envsched.audit.writing import write_batch, write_input_audit

__all__ = [
    "AuditReport",
    "RunLayout",
    "audit_run",
    "make_manifest",
    "read_epochs",
    "read_manifest",
    "write_batch",
    "write_epochs",
    "write_input_audit",
    "write_manifest",
]
