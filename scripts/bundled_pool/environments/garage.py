class Garage:
    """Cars waiting for repair and the mechanics who take them, each mechanic with a list of jobs."""

    def __init__(self, init_config):
        self.cars = init_config.get("cars", {})
        self.mechanics = init_config.get("mechanics", {})

    def find_car(self, owner: str) -> dict:
        """Find a car by its owner."""
        for key, car in self.cars.items():
            if car["owner"] == owner:
                return {"success": True, "data": {"car_id": key, **car}}
        return {"success": False, "error": "no such car"}

    def find_mechanic(self, name: str) -> dict:
        """Find a mechanic by name."""
        for key, mechanic in self.mechanics.items():
            if mechanic["name"] == name:
                return {"success": True, "data": {"mechanic_id": key, "name": name}}
        return {"success": False, "error": "no such mechanic"}

    def list_color(self, color: str) -> dict:
        """List the cars of one color."""
        found = [{"car_id": key, **car} for key, car in self.cars.items() if car["color"] == color]
        return {"success": True, "data": found}

    def paint_car(self, car_id: str, color: str) -> dict:
        """Paint a car."""
        if car_id not in self.cars:
            return {"success": False, "error": "no such car"}
        self.cars[car_id]["color"] = color
        return {"success": True, "data": "painted"}

    def set_state(self, car_id: str, state: str) -> dict:
        """Set the state of a car: broken, open or fixed."""
        if car_id not in self.cars:
            return {"success": False, "error": "no such car"}
        if state not in ("broken", "open", "fixed"):
            return {"success": False, "error": "bad state"}
        self.cars[car_id]["state"] = state
        return {"success": True, "data": "set"}

    def give_job(self, car_id: str, mechanic_id: str) -> dict:
        """Give a car to a mechanic; no more than three cars each."""
        if car_id not in self.cars or mechanic_id not in self.mechanics:
            return {"success": False, "error": "no such car or mechanic"}
        jobs = self.mechanics[mechanic_id]["jobs"]
        if len(jobs) >= 3 or car_id in jobs:
            return {"success": False, "error": "mechanic is full"}
        jobs.append(car_id)
        return {"success": True, "data": "given"}

    def take_car(self, owner: str, color: str) -> dict:
        """Take in a new car."""
        if any(car["owner"] == owner for car in self.cars.values()):
            return {"success": False, "error": "car exists"}
        number = 1
        while f"n{number}" in self.cars:
            number += 1
        self.cars[f"n{number}"] = {"owner": owner, "color": color, "state": "broken"}
        return {"success": True, "data": {"car_id": f"n{number}"}}

    def scrap_car(self, car_id: str) -> dict:
        """Scrap a car and drop it from all jobs."""
        if self.cars.pop(car_id, None) is None:
            return {"success": False, "error": "no such car"}
        for mechanic in self.mechanics.values():
            mechanic["jobs"] = [key for key in mechanic["jobs"] if key != car_id]
        return {"success": True, "data": "scrapped"}
