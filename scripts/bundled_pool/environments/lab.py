class Lab:
    """Samples in racks with a grade from 1 to 9 and a test result."""

    def __init__(self, init_config):
        self.samples = init_config.get("samples", {})
        self.report = init_config.get("report", {})

    def find_sample(self, name: str) -> dict:
        """Find a sample by name."""
        for key, sample in self.samples.items():
            if sample["name"] == name:
                return {"success": True, "data": {"sample_id": key, **sample}}
        return {"success": False, "error": "no such sample"}

    def list_rack(self, rack: str) -> dict:
        """List the samples of one rack."""
        found = [{"sample_id": key, **sample} for key, sample in self.samples.items() if sample["rack"] == rack]
        return {"success": True, "data": found}

    def move_sample(self, sample_id: str, rack: str) -> dict:
        """Move a sample to another rack."""
        if sample_id not in self.samples:
            return {"success": False, "error": "no such sample"}
        self.samples[sample_id]["rack"] = rack
        return {"success": True, "data": "moved"}

    def set_grade(self, sample_id: str, grade: int) -> dict:
        """Set the grade of a sample, from 1 to 9."""
        if sample_id not in self.samples:
            return {"success": False, "error": "no such sample"}
        if not 1 <= grade <= 9:
            return {"success": False, "error": "bad grade"}
        self.samples[sample_id]["grade"] = grade
        return {"success": True, "data": "set"}

    def set_result(self, sample_id: str, result: str) -> dict:
        """Set the result of a sample: none, pass or fail."""
        if sample_id not in self.samples:
            return {"success": False, "error": "no such sample"}
        if result not in ("none", "pass", "fail"):
            return {"success": False, "error": "bad result"}
        self.samples[sample_id]["result"] = result
        return {"success": True, "data": "set"}

    def add_sample(self, name: str, rack: str) -> dict:
        """Add a new sample."""
        if any(sample["name"] == name for sample in self.samples.values()):
            return {"success": False, "error": "sample exists"}
        number = 1
        while f"n{number}" in self.samples:
            number += 1
        self.samples[f"n{number}"] = {"name": name, "rack": rack, "grade": 1, "result": "none"}
        return {"success": True, "data": {"sample_id": f"n{number}"}}

    def destroy_sample(self, sample_id: str) -> dict:
        """Destroy a sample."""
        if self.samples.pop(sample_id, None) is None:
            return {"success": False, "error": "no such sample"}
        return {"success": True, "data": "destroyed"}

    def report_count(self, count: int) -> dict:
        """Report how many samples were counted."""
        self.report["count"] = count
        return {"success": True, "data": "noted"}
