class Fleet:
    """Trucks at depots, loaded up to ten units, driven by drivers."""

    def __init__(self, init_config):
        self.trucks = init_config.get("trucks", {})
        self.drivers = init_config.get("drivers", {})

    def find_truck(self, name: str) -> dict:
        """Find a truck by name."""
        for key, truck in self.trucks.items():
            if truck["name"] == name:
                return {"success": True, "data": {"truck_id": key, **truck}}
        return {"success": False, "error": "no such truck"}

    def find_driver(self, name: str) -> dict:
        """Find a driver by name."""
        for key, driver in self.drivers.items():
            if driver["name"] == name:
                return {"success": True, "data": {"driver_id": key, **driver}}
        return {"success": False, "error": "no such driver"}

    def list_depot(self, depot: str) -> dict:
        """List the trucks of one depot."""
        found = [{"truck_id": key, **truck} for key, truck in self.trucks.items() if truck["depot"] == depot]
        return {"success": True, "data": found}

    def send_truck(self, truck_id: str, depot: str) -> dict:
        """Send a truck to another depot."""
        if truck_id not in self.trucks:
            return {"success": False, "error": "no such truck"}
        self.trucks[truck_id]["depot"] = depot
        return {"success": True, "data": "sent"}

    def load_truck(self, truck_id: str, amount: int) -> dict:
        """Load a truck; the load never passes ten."""
        if truck_id not in self.trucks:
            return {"success": False, "error": "no such truck"}
        if amount < 1 or self.trucks[truck_id]["load"] + amount > 10:
            return {"success": False, "error": "bad amount"}
        self.trucks[truck_id]["load"] += amount
        return {"success": True, "data": "loaded"}

    def set_state(self, truck_id: str, state: str) -> dict:
        """Set the state of a truck: ready, broken or away."""
        if truck_id not in self.trucks:
            return {"success": False, "error": "no such truck"}
        if state not in ("ready", "broken", "away"):
            return {"success": False, "error": "bad state"}
        self.trucks[truck_id]["state"] = state
        return {"success": True, "data": "set"}

    def assign_driver(self, truck_id: str, driver_id: str) -> dict:
        """Let a driver drive a truck."""
        if truck_id not in self.trucks or driver_id not in self.drivers:
            return {"success": False, "error": "no such truck or driver"}
        self.drivers[driver_id]["truck"] = truck_id
        return {"success": True, "data": "assigned"}

    def buy_truck(self, name: str, depot: str) -> dict:
        """Buy a truck."""
        if any(truck["name"] == name for truck in self.trucks.values()):
            return {"success": False, "error": "truck exists"}
        number = 1
        while f"n{number}" in self.trucks:
            number += 1
        self.trucks[f"n{number}"] = {"name": name, "depot": depot, "load": 0, "state": "ready"}
        return {"success": True, "data": {"truck_id": f"n{number}"}}
