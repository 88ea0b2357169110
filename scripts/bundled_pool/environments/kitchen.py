class Kitchen:
    """Dishes of a menu, the cooks who make them and the orders at the pass."""

    def __init__(self, init_config):
        self.dishes = init_config.get("dishes", {})
        self.cooks = init_config.get("cooks", {})

    def find_dish(self, name: str) -> dict:
        """Find a dish by name."""
        for key, dish in self.dishes.items():
            if dish["name"] == name:
                return {"success": True, "data": {"dish_id": key, **dish}}
        return {"success": False, "error": "no such dish"}

    def find_cook(self, name: str) -> dict:
        """Find a cook by name."""
        for key, cook in self.cooks.items():
            if cook["name"] == name:
                return {"success": True, "data": {"cook_id": key, "name": name}}
        return {"success": False, "error": "no such cook"}

    def list_menu(self, menu: str) -> dict:
        """List the dishes of one menu."""
        found = [{"dish_id": key, **dish} for key, dish in self.dishes.items() if dish["menu"] == menu]
        return {"success": True, "data": found}

    def set_menu(self, dish_id: str, menu: str) -> dict:
        """Put a dish on another menu."""
        if dish_id not in self.dishes:
            return {"success": False, "error": "no such dish"}
        self.dishes[dish_id]["menu"] = menu
        return {"success": True, "data": "set"}

    def set_price(self, dish_id: str, price: int) -> dict:
        """Set the price of a dish, from 1 to 9."""
        if dish_id not in self.dishes:
            return {"success": False, "error": "no such dish"}
        if not 1 <= price <= 9:
            return {"success": False, "error": "bad price"}
        self.dishes[dish_id]["price"] = price
        return {"success": True, "data": "set"}

    def teach_dish(self, dish_id: str, cook_id: str) -> dict:
        """Teach a dish to a cook."""
        if dish_id not in self.dishes or cook_id not in self.cooks:
            return {"success": False, "error": "no such dish or cook"}
        self.cooks[cook_id]["knows"].append(dish_id)
        return {"success": True, "data": "taught"}

    def add_dish(self, name: str, menu: str, price: int) -> dict:
        """Add a new dish."""
        if any(dish["name"] == name for dish in self.dishes.values()):
            return {"success": False, "error": "dish exists"}
        number = 1
        while f"n{number}" in self.dishes:
            number += 1
        self.dishes[f"n{number}"] = {"name": name, "menu": menu, "price": price}
        return {"success": True, "data": {"dish_id": f"n{number}"}}

    def drop_dish(self, dish_id: str) -> dict:
        """Drop a dish from all menus."""
        if self.dishes.pop(dish_id, None) is None:
            return {"success": False, "error": "no such dish"}
        return {"success": True, "data": "dropped"}
