"""Settings that all tests share."""

from hypothesis import settings

# Shared machines are slow at times and compile kernels on first use: no example has a deadline.
settings.register_profile("taxofit", deadline=None, derandomize=True)
settings.load_profile("taxofit")
