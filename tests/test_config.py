"""Files and settings as users write them: each fault is one line."""

import pytest

from envsched.config import Config, load_config
from envsched.errors import ConfigError


@pytest.mark.parametrize("text", ["", "# nothing\n", "scheduler:\n", "scheduler:\ntrain:\n  # seed: 3\n"])
def test_empty_files_and_sections_are_the_defaults(tmp_path, text):
    (tmp_path / "run.yaml").write_text(text)
    assert load_config(tmp_path / "run.yaml") == Config()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"- a\n", "expected sections scheduler"),
        (b"half_life: 24\n", "expected sections scheduler"),
        (b"1: {a: 2}\n", "unknown section 1"),
        (b"scheduler: {1: 2}\n", "unknown setting of scheduler 1"),
        (b"scheduler: {half_lif: 2}\n", "did you mean 'half_life'"),
        (b"scheduler: {optimizer: sgd}\n", "did you mean 'train.optimizer'"),
        (b"scheduler: {half_life: 2, half_life: 3}\n", "line 1, column 27: 'half_life' occurs twice"),
        (b"scheduler: {half_life: [1\n", "run.yaml is not valid YAML: line 2, column 1"),
        (b"scheduler: {half_life: 2} # \xe9\n", "not UTF-8 at byte 28"),
        (b"scheduler: " + b"[" * 5000, "not valid YAML"),
        (b"scheduler: {half_life: .nan}\n", "finite"),
        (b"scheduler: {num_within: true}\n", "scheduler.num_within: true and false are not allowed here"),
        (b"scheduler: {num_cross: 1000000000000}\n", "less than or equal to 4096"),
        (b"scheduler: {reward_low: 1, reward_high: 0}\n", r"reward_high \(0.0\) must exceed reward_low \(1.0\)$"),
        (b"scheduler: {reward_high: 1.0e+200}\n", r"rewards may span 1e\+100 at most"),
        (b"features: {text_weight: 1.0e-320}\n", "a weight is 0, or from 1e-6 to 1e6"),
    ],
)
def test_a_fault_in_a_file_is_one_line(tmp_path, text, says):
    (tmp_path / "run.yaml").write_bytes(text)
    with pytest.raises(ConfigError, match=says) as error:
        load_config(tmp_path / "run.yaml")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("setting", ["half_life", "half_life=[1", "half_life=a: b: c", "half_life=\ud800", "batch_size=true", "=3"])
def test_a_fault_in_an_override_is_one_line(setting):
    with pytest.raises(ConfigError) as error:
        load_config(None, [setting])
    assert "\n" not in str(error.value)


def test_switches_stay_switches():
    assert load_config(None, ["calibrate=false"]).scheduler.calibrate is False
