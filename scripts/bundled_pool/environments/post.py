class Post:
    """Parcels for zones, weighed from 1 to 9, carried by couriers with a list of parcels each."""

    def __init__(self, init_config):
        self.parcels = init_config.get("parcels", {})
        self.couriers = init_config.get("couriers", {})

    def find_parcel(self, label: str) -> dict:
        """Find a parcel by label."""
        for key, parcel in self.parcels.items():
            if parcel["label"] == label:
                return {"success": True, "data": {"parcel_id": key, **parcel}}
        return {"success": False, "error": "no such parcel"}

    def find_courier(self, name: str) -> dict:
        """Find a courier by name."""
        for key, courier in self.couriers.items():
            if courier["name"] == name:
                return {"success": True, "data": {"courier_id": key, "name": name}}
        return {"success": False, "error": "no such courier"}

    def list_zone(self, zone: str) -> dict:
        """List the parcels for one zone."""
        found = [{"parcel_id": key, **parcel} for key, parcel in self.parcels.items() if parcel["zone"] == zone]
        return {"success": True, "data": found}

    def set_zone(self, parcel_id: str, zone: str) -> dict:
        """Send a parcel to another zone."""
        if parcel_id not in self.parcels:
            return {"success": False, "error": "no such parcel"}
        self.parcels[parcel_id]["zone"] = zone
        return {"success": True, "data": "set"}

    def set_state(self, parcel_id: str, state: str) -> dict:
        """Set the state of a parcel: held, sent or lost."""
        if parcel_id not in self.parcels:
            return {"success": False, "error": "no such parcel"}
        if state not in ("held", "sent", "lost"):
            return {"success": False, "error": "bad state"}
        self.parcels[parcel_id]["state"] = state
        return {"success": True, "data": "set"}

    def give_parcel(self, parcel_id: str, courier_id: str) -> dict:
        """Give a parcel to a courier."""
        if parcel_id not in self.parcels or courier_id not in self.couriers:
            return {"success": False, "error": "no such parcel or courier"}
        if any(parcel_id in courier["bag"] for courier in self.couriers.values()):
            return {"success": False, "error": "parcel is given"}
        self.couriers[courier_id]["bag"].append(parcel_id)
        return {"success": True, "data": "given"}

    def accept_parcel(self, label: str, zone: str, weight: int) -> dict:
        """Accept a new parcel."""
        if any(parcel["label"] == label for parcel in self.parcels.values()):
            return {"success": False, "error": "parcel exists"}
        number = 1
        while f"n{number}" in self.parcels:
            number += 1
        self.parcels[f"n{number}"] = {"label": label, "zone": zone, "weight": weight, "state": "held"}
        return {"success": True, "data": {"parcel_id": f"n{number}"}}

    def return_parcel(self, parcel_id: str) -> dict:
        """Return a parcel to its sender."""
        if self.parcels.pop(parcel_id, None) is None:
            return {"success": False, "error": "no such parcel"}
        return {"success": True, "data": "returned"}
