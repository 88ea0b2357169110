class Desk:
    """Tickets of a help desk with urgency and state, handled by agents. A closed ticket stays as it is."""

    def __init__(self, init_config):
        self.tickets = init_config.get("tickets", {})
        self.agents = init_config.get("agents", {})

    def _open_ticket(self, ticket_id):
        ticket = self.tickets.get(ticket_id)
        return None if ticket is None or ticket["state"] == "closed" else ticket

    def find_ticket(self, topic: str) -> dict:
        """Find a ticket by topic."""
        for key, ticket in self.tickets.items():
            if ticket["topic"] == topic:
                return {"success": True, "data": {"ticket_id": key, **ticket}}
        return {"success": False, "error": "no such ticket"}

    def find_agent(self, name: str) -> dict:
        """Find an agent by name."""
        for key, agent in self.agents.items():
            if agent["name"] == name:
                return {"success": True, "data": {"agent_id": key, **agent}}
        return {"success": False, "error": "no such agent"}

    def list_urgency(self, urgency: str) -> dict:
        """List the tickets of one urgency."""
        found = [{"ticket_id": key, **ticket} for key, ticket in self.tickets.items() if ticket["urgency"] == urgency]
        return {"success": True, "data": found}

    def set_urgency(self, ticket_id: str, urgency: str) -> dict:
        """Set the urgency of an open ticket: low, mid or high."""
        ticket = self._open_ticket(ticket_id)
        if ticket is None:
            return {"success": False, "error": "no such open ticket"}
        if urgency not in ("low", "mid", "high"):
            return {"success": False, "error": "bad urgency"}
        ticket["urgency"] = urgency
        return {"success": True, "data": "set"}

    def set_state(self, ticket_id: str, state: str) -> dict:
        """Set the state of an open ticket: new, waiting or closed."""
        ticket = self._open_ticket(ticket_id)
        if ticket is None:
            return {"success": False, "error": "no such open ticket"}
        if state not in ("new", "waiting", "closed"):
            return {"success": False, "error": "bad state"}
        ticket["state"] = state
        return {"success": True, "data": "set"}

    def assign_agent(self, ticket_id: str, agent_id: str) -> dict:
        """Assign an agent to an open ticket."""
        ticket = self._open_ticket(ticket_id)
        if ticket is None or agent_id not in self.agents:
            return {"success": False, "error": "no such open ticket or agent"}
        ticket["agent"] = agent_id
        return {"success": True, "data": "assigned"}

    def file_ticket(self, topic: str, urgency: str) -> dict:
        """File a new ticket."""
        if any(ticket["topic"] == topic for ticket in self.tickets.values()):
            return {"success": False, "error": "ticket exists"}
        number = 1
        while f"n{number}" in self.tickets:
            number += 1
        self.tickets[f"n{number}"] = {"topic": topic, "urgency": urgency, "state": "new"}
        return {"success": True, "data": {"ticket_id": f"n{number}"}}
