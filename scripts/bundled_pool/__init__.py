"""How the bundled pool is made: environment classes, task grammar, reference actions; see docs/bundled-pool.md."""
