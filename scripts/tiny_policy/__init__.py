"""How the tiny policy is made: its tokenizer, its demonstrations, its warm-up; see docs/tiny-policy.md."""
