class Farm:
    """Animals in pens, fed in portions."""

    def __init__(self, init_config):
        self.animals = init_config.get("animals", {})

    def find_animal(self, name: str) -> dict:
        """Find an animal by name."""
        for key, animal in self.animals.items():
            if animal["name"] == name:
                return {"success": True, "data": {"animal_id": key, **animal}}
        return {"success": False, "error": "no such animal"}

    def list_pen(self, pen: str) -> dict:
        """List the animals of one pen."""
        found = [{"animal_id": key, **animal} for key, animal in self.animals.items() if animal["pen"] == pen]
        return {"success": True, "data": found}

    def move_animal(self, animal_id: str, pen: str) -> dict:
        """Move an animal to another pen."""
        if animal_id not in self.animals:
            return {"success": False, "error": "no such animal"}
        self.animals[animal_id]["pen"] = pen
        return {"success": True, "data": "moved"}

    def feed_animal(self, animal_id: str, amount: int) -> dict:
        """Feed an animal; the portions add up."""
        if animal_id not in self.animals:
            return {"success": False, "error": "no such animal"}
        if not 1 <= amount <= 9:
            return {"success": False, "error": "bad amount"}
        self.animals[animal_id]["food"] += amount
        return {"success": True, "data": "fed"}

    def set_health(self, animal_id: str, health: str) -> dict:
        """Set the health of an animal: well, weak or sick."""
        if animal_id not in self.animals:
            return {"success": False, "error": "no such animal"}
        if health not in ("well", "weak", "sick"):
            return {"success": False, "error": "bad health"}
        self.animals[animal_id]["health"] = health
        return {"success": True, "data": "set"}

    def buy_animal(self, name: str, pen: str) -> dict:
        """Buy an animal and put it in a pen."""
        if any(animal["name"] == name for animal in self.animals.values()):
            return {"success": False, "error": "animal exists"}
        number = 1
        while f"n{number}" in self.animals:
            number += 1
        self.animals[f"n{number}"] = {"name": name, "pen": pen, "health": "well", "food": 0}
        return {"success": True, "data": {"animal_id": f"n{number}"}}

    def sell_animal(self, animal_id: str) -> dict:
        """Sell an animal."""
        if self.animals.pop(animal_id, None) is None:
            return {"success": False, "error": "no such animal"}
        return {"success": True, "data": "sold"}
