"""From weights to predictions: packed node weights and the walk down the taxonomy."""
