"""The runtime that a hurried trainer writes: environments in its own process, results by pickle. What it loses shows what ours keeps.

Run as a program with one argument, a JSON object: ``source`` of the class ``Box``, ``world`` for its ``attack``.
"""

import json
import pickle
import sys
import time


def score(box) -> float:
    return 1.0 if box.count > 0 else 0.0


def main(order: dict) -> None:
    names: dict = {}
    exec(order["source"], names)
    hostile, neighbour = names["Box"]({}), names["Box"]({})
    result = pickle.loads(pickle.dumps(hostile.attack(**order["world"])))
    print("attack:", f"{result}")
    time.sleep(0.2)
    print("neighbour:", neighbour.keep(), score(neighbour))
    with open("note", "w") as stream:
        stream.write("the trainer goes on")
    print("the trainer goes on")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
