class Theater:
    """Shows on evenings, with a stage, a price and a cast."""

    def __init__(self, init_config):
        self.shows = init_config.get("shows", {})
        self.actors = init_config.get("actors", {})

    def find_show(self, title: str) -> dict:
        """Find a show by title."""
        for key, show in self.shows.items():
            if show["title"] == title:
                return {"success": True, "data": {"show_id": key, "title": title, "day": show["day"], "price": show["price"]}}
        return {"success": False, "error": "no such show"}

    def find_actor(self, name: str) -> dict:
        """Find an actor by name."""
        for key, actor in self.actors.items():
            if actor["name"] == name:
                return {"success": True, "data": {"actor_id": key, **actor}}
        return {"success": False, "error": "no such actor"}

    def list_day(self, day: str) -> dict:
        """List the shows of one day."""
        found = [{"show_id": key, "title": show["title"], "price": show["price"]} for key, show in self.shows.items() if show["day"] == day]
        return {"success": True, "data": found}

    def move_show(self, show_id: str, day: str) -> dict:
        """Move a show to another day."""
        if show_id not in self.shows:
            return {"success": False, "error": "no such show"}
        self.shows[show_id]["day"] = day
        return {"success": True, "data": "moved"}

    def set_price(self, show_id: str, price: int) -> dict:
        """Set the price of a show, from 1 to 9."""
        if show_id not in self.shows:
            return {"success": False, "error": "no such show"}
        if not 1 <= price <= 9:
            return {"success": False, "error": "bad price"}
        self.shows[show_id]["price"] = price
        return {"success": True, "data": "set"}

    def cast_actor(self, show_id: str, actor_id: str) -> dict:
        """Cast an actor in a show, once."""
        if show_id not in self.shows or actor_id not in self.actors:
            return {"success": False, "error": "no such show or actor"}
        if actor_id in self.shows[show_id]["cast"]:
            return {"success": False, "error": "already cast"}
        self.shows[show_id]["cast"].append(actor_id)
        return {"success": True, "data": "cast"}

    def plan_show(self, title: str, day: str, price: int) -> dict:
        """Plan a new show."""
        if any(show["title"] == title for show in self.shows.values()):
            return {"success": False, "error": "show exists"}
        number = 1
        while f"n{number}" in self.shows:
            number += 1
        self.shows[f"n{number}"] = {"title": title, "day": day, "price": price, "cast": []}
        return {"success": True, "data": {"show_id": f"n{number}"}}

    def cancel_show(self, show_id: str) -> dict:
        """Cancel a show."""
        if self.shows.pop(show_id, None) is None:
            return {"success": False, "error": "no such show"}
        return {"success": True, "data": "cancelled"}
