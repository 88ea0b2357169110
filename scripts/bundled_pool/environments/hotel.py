class Hotel:
    """Rooms on floors and guests who stay in them; one guest a room."""

    def __init__(self, init_config):
        self.rooms = init_config.get("rooms", {})
        self.guests = init_config.get("guests", {})
        self.report = init_config.get("report", {})

    def find_room(self, name: str) -> dict:
        """Find a room by name."""
        for key, room in self.rooms.items():
            if room["name"] == name:
                return {"success": True, "data": {"room_id": key, **room}}
        return {"success": False, "error": "no such room"}

    def find_guest(self, name: str) -> dict:
        """Find a guest by name."""
        for key, guest in self.guests.items():
            if guest["name"] == name:
                return {"success": True, "data": {"guest_id": key, **guest}}
        return {"success": False, "error": "no such guest"}

    def list_wing(self, wing: str) -> dict:
        """List the rooms of one wing."""
        found = [{"room_id": key, **room} for key, room in self.rooms.items() if room["wing"] == wing]
        return {"success": True, "data": found}

    def set_price(self, room_id: str, price: int) -> dict:
        """Set the price of a room, from 1 to 9."""
        if room_id not in self.rooms:
            return {"success": False, "error": "no such room"}
        if not 1 <= price <= 9:
            return {"success": False, "error": "bad price"}
        self.rooms[room_id]["price"] = price
        return {"success": True, "data": "set"}

    def set_state(self, room_id: str, state: str) -> dict:
        """Set the state of a room: clean, dirty or shut."""
        if room_id not in self.rooms:
            return {"success": False, "error": "no such room"}
        if state not in ("clean", "dirty", "shut"):
            return {"success": False, "error": "bad state"}
        self.rooms[room_id]["state"] = state
        return {"success": True, "data": "set"}

    def check_in(self, room_id: str, guest_id: str) -> dict:
        """Let a guest stay in a free room."""
        if room_id not in self.rooms or guest_id not in self.guests:
            return {"success": False, "error": "no such room or guest"}
        if any(guest.get("room") == room_id for guest in self.guests.values()):
            return {"success": False, "error": "room is taken"}
        self.guests[guest_id]["room"] = room_id
        return {"success": True, "data": "in"}

    def add_room(self, name: str, wing: str, price: int) -> dict:
        """Open a new room."""
        if any(room["name"] == name for room in self.rooms.values()):
            return {"success": False, "error": "room exists"}
        number = 1
        while f"n{number}" in self.rooms:
            number += 1
        self.rooms[f"n{number}"] = {"name": name, "wing": wing, "price": price, "state": "clean"}
        return {"success": True, "data": {"room_id": f"n{number}"}}

    def report_count(self, count: int) -> dict:
        """Report how many rooms were counted."""
        self.report["count"] = count
        return {"success": True, "data": "noted"}
