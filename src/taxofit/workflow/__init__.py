"""What the commands do, without a terminal: files in, reports out."""
