class Clinic:
    """Patients in wards, each under at most one doctor."""

    def __init__(self, init_config):
        self.patients = init_config.get("patients", {})
        self.doctors = init_config.get("doctors", {})

    def find_patient(self, name: str) -> dict:
        """Find a patient by name."""
        for key, patient in self.patients.items():
            if patient["name"] == name:
                return {"success": True, "data": {"patient_id": key, **patient}}
        return {"success": False, "error": "no such patient"}

    def find_doctor(self, name: str) -> dict:
        """Find a doctor by name."""
        for key, doctor in self.doctors.items():
            if doctor["name"] == name:
                return {"success": True, "data": {"doctor_id": key, **doctor}}
        return {"success": False, "error": "no such doctor"}

    def list_ward(self, ward: str) -> dict:
        """List the patients of one ward."""
        found = [{"patient_id": key, **patient} for key, patient in self.patients.items() if patient["ward"] == ward]
        return {"success": True, "data": found}

    def move_patient(self, patient_id: str, ward: str) -> dict:
        """Move a patient to another ward."""
        if patient_id not in self.patients:
            return {"success": False, "error": "no such patient"}
        self.patients[patient_id]["ward"] = ward
        return {"success": True, "data": "moved"}

    def set_risk(self, patient_id: str, risk: str) -> dict:
        """Set the risk of a patient: low, mid or high."""
        if patient_id not in self.patients:
            return {"success": False, "error": "no such patient"}
        if risk not in ("low", "mid", "high"):
            return {"success": False, "error": "bad risk"}
        self.patients[patient_id]["risk"] = risk
        return {"success": True, "data": "set"}

    def assign_doctor(self, patient_id: str, doctor_id: str) -> dict:
        """Put a patient under a doctor."""
        if patient_id not in self.patients or doctor_id not in self.doctors:
            return {"success": False, "error": "no such patient or doctor"}
        self.patients[patient_id]["doctor"] = doctor_id
        return {"success": True, "data": "assigned"}

    def admit_patient(self, name: str, ward: str, risk: str) -> dict:
        """Admit a new patient."""
        if any(patient["name"] == name for patient in self.patients.values()):
            return {"success": False, "error": "patient exists"}
        number = 1
        while f"n{number}" in self.patients:
            number += 1
        self.patients[f"n{number}"] = {"name": name, "ward": ward, "risk": risk}
        return {"success": True, "data": {"patient_id": f"n{number}"}}

    def discharge_patient(self, patient_id: str) -> dict:
        """Discharge a patient; the record is closed."""
        if self.patients.pop(patient_id, None) is None:
            return {"success": False, "error": "no such patient"}
        return {"success": True, "data": "discharged"}
