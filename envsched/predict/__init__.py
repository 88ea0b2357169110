"""From history and graph to the reward variance that each task would show now.

``HistoryPropagation`` is a PyG layer of its own: taking it from here loads torch and PyG and nothing else of envsched.
"""

from importlib import import_module

_HOME_OF = {
    "Calibration": "envsched.predict.calibration",
    "Forecast": "envsched.predict.forecast",
    "HistoryPropagation": "envsched.predict.propagation",
    "ListedPredictor": "envsched.predict.listed",
    "Prediction": "envsched.predict.predictor",
    "Predictor": "envsched.predict.predictor",
    "build_predictor": "envsched.predict.predictor",
    "largest_variance": "envsched.predict.predictor",
}

__all__ = [*_HOME_OF]


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'envsched.predict' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
