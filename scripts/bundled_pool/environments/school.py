class School:
    """Courses on weekdays with their pupils."""

    def __init__(self, init_config):
        self.courses = init_config.get("courses", {})
        self.pupils = init_config.get("pupils", {})

    def find_course(self, title: str) -> dict:
        """Find a course by title."""
        for key, course in self.courses.items():
            if course["title"] == title:
                return {"success": True, "data": {"course_id": key, "title": title, "day": course["day"], "level": course["level"]}}
        return {"success": False, "error": "no such course"}

    def find_pupil(self, name: str) -> dict:
        """Find a pupil by name."""
        for key, pupil in self.pupils.items():
            if pupil["name"] == name:
                return {"success": True, "data": {"pupil_id": key, **pupil}}
        return {"success": False, "error": "no such pupil"}

    def list_day(self, day: str) -> dict:
        """List the courses of one day."""
        found = [{"course_id": key, "title": course["title"]} for key, course in self.courses.items() if course["day"] == day]
        return {"success": True, "data": found}

    def move_course(self, course_id: str, day: str) -> dict:
        """Move a course to another day."""
        if course_id not in self.courses:
            return {"success": False, "error": "no such course"}
        self.courses[course_id]["day"] = day
        return {"success": True, "data": "moved"}

    def set_level(self, course_id: str, level: str) -> dict:
        """Set the level of a course: low, mid or high."""
        if course_id not in self.courses:
            return {"success": False, "error": "no such course"}
        if level not in ("low", "mid", "high"):
            return {"success": False, "error": "bad level"}
        self.courses[course_id]["level"] = level
        return {"success": True, "data": "set"}

    def enroll_pupil(self, course_id: str, pupil_id: str) -> dict:
        """Enroll a pupil in a course, once."""
        if course_id not in self.courses or pupil_id not in self.pupils:
            return {"success": False, "error": "no such course or pupil"}
        if pupil_id in self.courses[course_id]["pupils"]:
            return {"success": False, "error": "already in"}
        self.courses[course_id]["pupils"].append(pupil_id)
        return {"success": True, "data": "enrolled"}

    def add_course(self, title: str, day: str, level: str) -> dict:
        """Offer a new course."""
        if any(course["title"] == title for course in self.courses.values()):
            return {"success": False, "error": "course exists"}
        number = 1
        while f"n{number}" in self.courses:
            number += 1
        self.courses[f"n{number}"] = {"title": title, "day": day, "level": level, "pupils": []}
        return {"success": True, "data": {"course_id": f"n{number}"}}

    def cancel_course(self, course_id: str) -> dict:
        """Cancel a course."""
        if self.courses.pop(course_id, None) is None:
            return {"success": False, "error": "no such course"}
        return {"success": True, "data": "cancelled"}
