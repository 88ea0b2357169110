class Library:
    """Books on shelves, lent to members. A book that is out can't be lent again or removed."""

    def __init__(self, init_config):
        self.books = init_config.get("books", {})
        self.members = init_config.get("members", {})
        self.report = init_config.get("report", {})

    def find_book(self, title: str) -> dict:
        """Find a book by its title."""
        for key, book in self.books.items():
            if book["title"] == title:
                return {"success": True, "data": {"book_id": key, **book}}
        return {"success": False, "error": "no such book"}

    def find_member(self, name: str) -> dict:
        """Find a member by name."""
        for key, member in self.members.items():
            if member["name"] == name:
                return {"success": True, "data": {"member_id": key, **member}}
        return {"success": False, "error": "no such member"}

    def list_shelf(self, shelf: str) -> dict:
        """List the books of one shelf."""
        found = [{"book_id": key, **book} for key, book in self.books.items() if book["shelf"] == shelf]
        return {"success": True, "data": found}

    def move_book(self, book_id: str, shelf: str) -> dict:
        """Put a book on another shelf."""
        if book_id not in self.books:
            return {"success": False, "error": "no such book"}
        self.books[book_id]["shelf"] = shelf
        return {"success": True, "data": "moved"}

    def set_state(self, book_id: str, state: str) -> dict:
        """Set the state of a book: fine, torn or lost."""
        if book_id not in self.books:
            return {"success": False, "error": "no such book"}
        if state not in ("fine", "torn", "lost"):
            return {"success": False, "error": "bad state"}
        self.books[book_id]["state"] = state
        return {"success": True, "data": "set"}

    def lend_book(self, book_id: str, member_id: str) -> dict:
        """Lend a book to a member."""
        if book_id not in self.books or member_id not in self.members:
            return {"success": False, "error": "no such book or member"}
        if self.books[book_id].get("member"):
            return {"success": False, "error": "book is out"}
        self.books[book_id]["member"] = member_id
        return {"success": True, "data": "lent"}

    def add_book(self, title: str, shelf: str) -> dict:
        """Add a new book to a shelf."""
        if any(book["title"] == title for book in self.books.values()):
            return {"success": False, "error": "book exists"}
        number = 1
        while f"n{number}" in self.books:
            number += 1
        self.books[f"n{number}"] = {"title": title, "shelf": shelf, "state": "fine"}
        return {"success": True, "data": {"book_id": f"n{number}"}}

    def remove_book(self, book_id: str) -> dict:
        """Remove a book that is not out."""
        if book_id not in self.books:
            return {"success": False, "error": "no such book"}
        if self.books[book_id].get("member"):
            return {"success": False, "error": "book is out"}
        del self.books[book_id]
        return {"success": True, "data": "removed"}

    def report_count(self, count: int) -> dict:
        """Report how many books were counted."""
        self.report["count"] = count
        return {"success": True, "data": "noted"}
