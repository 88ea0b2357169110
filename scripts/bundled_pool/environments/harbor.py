class Harbor:
    """Ships at docks with their flags and cargo, led in by pilots."""

    def __init__(self, init_config):
        self.ships = init_config.get("ships", {})
        self.pilots = init_config.get("pilots", {})
        self.report = init_config.get("report", {})

    def find_ship(self, name: str) -> dict:
        """Find a ship by name."""
        for key, ship in self.ships.items():
            if ship["name"] == name:
                return {"success": True, "data": {"ship_id": key, **ship}}
        return {"success": False, "error": "no such ship"}

    def find_pilot(self, name: str) -> dict:
        """Find a pilot by name."""
        for key, pilot in self.pilots.items():
            if pilot["name"] == name:
                return {"success": True, "data": {"pilot_id": key, **pilot}}
        return {"success": False, "error": "no such pilot"}

    def list_dock(self, dock: str) -> dict:
        """List the ships at one dock."""
        found = [{"ship_id": key, **ship} for key, ship in self.ships.items() if ship["dock"] == dock]
        return {"success": True, "data": found}

    def move_ship(self, ship_id: str, dock: str) -> dict:
        """Move a ship to another dock."""
        if ship_id not in self.ships:
            return {"success": False, "error": "no such ship"}
        self.ships[ship_id]["dock"] = dock
        return {"success": True, "data": "moved"}

    def load_ship(self, ship_id: str, amount: int) -> dict:
        """Load cargo; it adds up."""
        if ship_id not in self.ships:
            return {"success": False, "error": "no such ship"}
        if not 1 <= amount <= 9:
            return {"success": False, "error": "bad amount"}
        self.ships[ship_id]["cargo"] += amount
        return {"success": True, "data": "loaded"}

    def set_flag(self, ship_id: str, flag: str) -> dict:
        """Set the color of a ship's flag."""
        if ship_id not in self.ships:
            return {"success": False, "error": "no such ship"}
        self.ships[ship_id]["flag"] = flag
        return {"success": True, "data": "set"}

    def send_pilot(self, ship_id: str, pilot_id: str) -> dict:
        """Send a pilot to a ship."""
        if ship_id not in self.ships or pilot_id not in self.pilots:
            return {"success": False, "error": "no such ship or pilot"}
        self.ships[ship_id]["pilot"] = pilot_id
        return {"success": True, "data": "sent"}

    def let_go(self, ship_id: str) -> dict:
        """Let a ship leave the harbor."""
        if self.ships.pop(ship_id, None) is None:
            return {"success": False, "error": "no such ship"}
        return {"success": True, "data": "gone"}

    def report_count(self, count: int) -> dict:
        """Report how many ships were counted."""
        self.report["count"] = count
        return {"success": True, "data": "noted"}
