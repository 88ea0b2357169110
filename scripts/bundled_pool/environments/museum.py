class Museum:
    """Exhibits in halls, some on loan, each with a rank from 1 to 9."""

    def __init__(self, init_config):
        self.exhibits = init_config.get("exhibits", {})
        self.report = init_config.get("report", {})

    def find_exhibit(self, title: str) -> dict:
        """Find an exhibit by title."""
        for key, exhibit in self.exhibits.items():
            if exhibit["title"] == title:
                return {"success": True, "data": {"exhibit_id": key, **exhibit}}
        return {"success": False, "error": "no such exhibit"}

    def list_hall(self, hall: str) -> dict:
        """List the exhibits of one hall."""
        found = [{"exhibit_id": key, **exhibit} for key, exhibit in self.exhibits.items() if exhibit["hall"] == hall]
        return {"success": True, "data": found}

    def move_exhibit(self, exhibit_id: str, hall: str) -> dict:
        """Move an exhibit to another hall."""
        if exhibit_id not in self.exhibits:
            return {"success": False, "error": "no such exhibit"}
        self.exhibits[exhibit_id]["hall"] = hall
        return {"success": True, "data": "moved"}

    def set_rank(self, exhibit_id: str, rank: int) -> dict:
        """Set the rank of an exhibit, from 1 to 9."""
        if exhibit_id not in self.exhibits:
            return {"success": False, "error": "no such exhibit"}
        if not 1 <= rank <= 9:
            return {"success": False, "error": "bad rank"}
        self.exhibits[exhibit_id]["rank"] = rank
        return {"success": True, "data": "set"}

    def set_state(self, exhibit_id: str, state: str) -> dict:
        """Set the state of an exhibit: shown, stored or loaned."""
        if exhibit_id not in self.exhibits:
            return {"success": False, "error": "no such exhibit"}
        if state not in ("shown", "stored", "loaned"):
            return {"success": False, "error": "bad state"}
        self.exhibits[exhibit_id]["state"] = state
        return {"success": True, "data": "set"}

    def add_exhibit(self, title: str, hall: str, rank: int) -> dict:
        """Add a new exhibit."""
        if any(exhibit["title"] == title for exhibit in self.exhibits.values()):
            return {"success": False, "error": "exhibit exists"}
        number = 1
        while f"n{number}" in self.exhibits:
            number += 1
        self.exhibits[f"n{number}"] = {"title": title, "hall": hall, "rank": rank, "state": "shown"}
        return {"success": True, "data": {"exhibit_id": f"n{number}"}}

    def remove_exhibit(self, exhibit_id: str) -> dict:
        """Remove an exhibit for good."""
        if self.exhibits.pop(exhibit_id, None) is None:
            return {"success": False, "error": "no such exhibit"}
        return {"success": True, "data": "removed"}

    def report_count(self, count: int) -> dict:
        """Report how many exhibits were counted."""
        self.report["count"] = count
        return {"success": True, "data": "noted"}
