"""Node models: one L2-regularised logistic regression for every node, solved many at a time."""
