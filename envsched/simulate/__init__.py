"""The court: synthetic learners and recorded rollouts on which schedulers are compared at equal rollouts."""
