"""Small files of BFCL's form, made here: a counter and a letter box, two dialogues in each subset."""

import json

SUBSETS = ("base", "miss_func", "miss_param", "long_context")

COUNTER = """
class MathAPI:
    def __init__(self):
        self._api_description = "a counter"

    def add(self, a, b):
        return {"result": a + b}

    def logarithm(self, value, base, precision):
        import mpmath

        mpmath.mp.dps = precision
        return {"result": mpmath.log(value) / mpmath.log(base)}
"""
BOX = """
from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.long_context import TAIL


class Letter:
    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return self.text == other.text


class MessageAPI:
    def __init__(self):
        self.letters = []
        self._reads = 0

    def _load_scenario(self, scenario, long_context=False):
        self.letters = [Letter(text) for text in scenario.get("letters", [])]
        self.long_context = long_context

    def post(self, text):
        self.letters.append(Letter(text + (TAIL if self.long_context else "")))
        return {"posted": len(self.letters)}

    def read(self, number):
        self._reads += 1
        return self.letters[number].text

    def sleep(self):
        while True:
            pass
"""
DOCUMENTS = {
    "math_api": {"add": {"a": "float", "b": "float"}, "logarithm": {"value": "float", "base": "float", "precision": "integer"}},
    "message_api": {"post": {"text": "string"}, "read": {"number": "integer"}, "sleep": {}},
}
OTHERS = ("gorilla_file_system", "posting_api", "ticket_api", "trading_bot", "travel_booking", "vehicle_control")
PROMPTS = 'MAXIMUM_STEP_LIMIT = 3\nDEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC = "There is more now."\n'


def dialogue(subset, number, turns, truth, **more):
    key = f"multi_turn_{subset}_{number}"
    question = [[{"role": "user", "content": said}] if said else [] for said in turns]
    item = {"id": key, "question": question, "initial_config": {"MessageAPI": {"letters": ["hello"]}}, **more}
    return {"involved_classes": ["MessageAPI", "MathAPI"], **item}, {"id": key, "ground_truth": truth}


def write_small(folder):
    """The folder with all files."""
    for name, functions in DOCUMENTS.items():
        documents = [
            {"name": f, "description": f, "parameters": {"type": "dict", "properties": {p: {"type": t} for p, t in parameters.items()}}}
            for f, parameters in functions.items()
        ]
        _write(folder / f"multi_turn_func_doc/{name}.json", documents)
    for name in OTHERS:
        _write(folder / f"multi_turn_func_doc/{name}.json", [])
        _text(folder / f"func_source_code/{name}.py", "")
    _text(folder / "func_source_code/math_api.py", COUNTER)
    _text(folder / "func_source_code/message_api.py", BOX)
    _text(folder / "func_source_code/long_context.py", 'TAIL = "." * 20000\n')
    _text(folder / "default_prompts.py", PROMPTS)
    for subset in SUBSETS:
        made = [
            dialogue(subset, 0, ["Add one and two, read letter 0.", "Post it."], [["add(1, b=2)", "read(number=0)"], ["post(text='3')"]]),
            dialogue(subset, 1, ["Post x.", "What is log2 of 8?"], [["post(text='x')"], ["logarithm(value=8, base=2, precision=5)"]]),
        ]
        if subset == "miss_func":
            withheld = {"missed_function": {"1": ["post"]}}
            made[0] = dialogue(subset, 0, ["Post hi.", "", "Read it."], [[], ["post(text='hi')"], ["read(number=1)"]], **withheld)
        _write(folder / f"BFCL_v4_multi_turn_{subset}.json", [item for item, _ in made])
        _write(folder / f"possible_answer/BFCL_v4_multi_turn_{subset}.json", [answer for _, answer in made])
    return folder


def _write(path, objects):
    _text(path, "".join(json.dumps(item) + "\n" for item in objects))


def _text(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
