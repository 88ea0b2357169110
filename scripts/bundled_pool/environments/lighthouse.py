class Lighthouse:
    """Lamps of a lighthouse: each has a color and is on or off."""

    def __init__(self, init_config):
        self.lamps = init_config.get("lamps", {})

    def find_lamp(self, name: str) -> dict:
        """Find a lamp by name."""
        for key, lamp in self.lamps.items():
            if lamp["name"] == name:
                return {"success": True, "data": {"lamp_id": key, **lamp}}
        return {"success": False, "error": "no such lamp"}

    def set_color(self, lamp_id: str, color: str) -> dict:
        """Set the color of a lamp."""
        if lamp_id not in self.lamps:
            return {"success": False, "error": "no such lamp"}
        self.lamps[lamp_id]["color"] = color
        return {"success": True, "data": "set"}

    def set_state(self, lamp_id: str, state: str) -> dict:
        """Switch a lamp on or off."""
        if lamp_id not in self.lamps:
            return {"success": False, "error": "no such lamp"}
        if state not in ("on", "off"):
            return {"success": False, "error": "bad state"}
        self.lamps[lamp_id]["state"] = state
        return {"success": True, "data": "set"}
