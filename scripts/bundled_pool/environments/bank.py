class Bank:
    """Accounts with a balance. A frozen account takes no money out; a balance never falls below zero."""

    def __init__(self, init_config):
        self.accounts = init_config.get("accounts", {})

    def find_account(self, owner: str) -> dict:
        """Find an account by its owner."""
        for key, account in self.accounts.items():
            if account["owner"] == owner:
                return {"success": True, "data": {"account_id": key, **account}}
        return {"success": False, "error": "no such account"}

    def list_branch(self, branch: str) -> dict:
        """List the accounts of one branch."""
        found = [{"account_id": key, **account} for key, account in self.accounts.items() if account["branch"] == branch]
        return {"success": True, "data": found}

    def deposit(self, account_id: str, amount: int) -> dict:
        """Pay money into an account."""
        if account_id not in self.accounts:
            return {"success": False, "error": "no such account"}
        if not 1 <= amount <= 9:
            return {"success": False, "error": "bad amount"}
        self.accounts[account_id]["balance"] += amount
        return {"success": True, "data": "paid"}

    def transfer(self, account_id: str, other_id: str, amount: int) -> dict:
        """Send money from an account to another one."""
        if account_id not in self.accounts or other_id not in self.accounts:
            return {"success": False, "error": "no such account"}
        source = self.accounts[account_id]
        if source["state"] == "frozen" or not 1 <= amount <= source["balance"]:
            return {"success": False, "error": "refused"}
        source["balance"] -= amount
        self.accounts[other_id]["balance"] += amount
        return {"success": True, "data": "sent"}

    def set_state(self, account_id: str, state: str) -> dict:
        """Set the state of an account: open or frozen."""
        if account_id not in self.accounts:
            return {"success": False, "error": "no such account"}
        if state not in ("open", "frozen"):
            return {"success": False, "error": "bad state"}
        self.accounts[account_id]["state"] = state
        return {"success": True, "data": "set"}

    def open_account(self, owner: str, branch: str) -> dict:
        """Open an account with balance zero."""
        if any(account["owner"] == owner for account in self.accounts.values()):
            return {"success": False, "error": "account exists"}
        number = 1
        while f"n{number}" in self.accounts:
            number += 1
        self.accounts[f"n{number}"] = {"owner": owner, "branch": branch, "state": "open", "balance": 0}
        return {"success": True, "data": {"account_id": f"n{number}"}}

    def close_account(self, account_id: str) -> dict:
        """Close an account."""
        if self.accounts.pop(account_id, None) is None:
            return {"success": False, "error": "no such account"}
        return {"success": True, "data": "closed"}
