"""What pytest leaves out when a machine lacks an optional library."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/taxofit/bank/torch_kernels.py"]
