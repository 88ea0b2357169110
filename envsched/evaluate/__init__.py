"""What a policy is worth on tasks that it is not trained on."""
