"""Native twins of the hot operations; ``envsched.ops`` picks one. The torch or numpy reference is the truth."""
