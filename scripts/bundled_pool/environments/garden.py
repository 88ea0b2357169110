class Garden:
    """Plants in beds that are watered by the can."""

    def __init__(self, init_config):
        self.plants = init_config.get("plants", {})
        self.report = init_config.get("report", {})

    def find_plant(self, name: str) -> dict:
        """Find a plant by name."""
        for key, plant in self.plants.items():
            if plant["name"] == name:
                return {"success": True, "data": {"plant_id": key, **plant}}
        return {"success": False, "error": "no such plant"}

    def list_bed(self, bed: str) -> dict:
        """List the plants of one bed."""
        found = [{"plant_id": key, **plant} for key, plant in self.plants.items() if plant["bed"] == bed]
        return {"success": True, "data": found}

    def water_plant(self, plant_id: str, amount: int) -> dict:
        """Water a plant; the cans add up."""
        if plant_id not in self.plants:
            return {"success": False, "error": "no such plant"}
        if not 1 <= amount <= 9:
            return {"success": False, "error": "bad amount"}
        self.plants[plant_id]["water"] += amount
        return {"success": True, "data": "watered"}

    def move_plant(self, plant_id: str, bed: str) -> dict:
        """Move a plant to another bed."""
        if plant_id not in self.plants:
            return {"success": False, "error": "no such plant"}
        self.plants[plant_id]["bed"] = bed
        return {"success": True, "data": "moved"}

    def set_size(self, plant_id: str, size: str) -> dict:
        """Cut a plant to a size: small, mid or big."""
        if plant_id not in self.plants:
            return {"success": False, "error": "no such plant"}
        if size not in ("small", "mid", "big"):
            return {"success": False, "error": "bad size"}
        self.plants[plant_id]["size"] = size
        return {"success": True, "data": "set"}

    def add_plant(self, name: str, bed: str, size: str) -> dict:
        """Plant a new one."""
        if any(plant["name"] == name for plant in self.plants.values()):
            return {"success": False, "error": "plant exists"}
        number = 1
        while f"n{number}" in self.plants:
            number += 1
        self.plants[f"n{number}"] = {"name": name, "bed": bed, "size": size, "water": 0}
        return {"success": True, "data": {"plant_id": f"n{number}"}}

    def pull_plant(self, plant_id: str) -> dict:
        """Pull a plant out."""
        if self.plants.pop(plant_id, None) is None:
            return {"success": False, "error": "no such plant"}
        return {"success": True, "data": "pulled"}

    def report_count(self, count: int) -> dict:
        """Report how many plants were counted."""
        self.report["count"] = count
        return {"success": True, "data": "noted"}
