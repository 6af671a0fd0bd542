"""What a fit learnt about its taxonomy, as plain values that a report can show."""

from taxofit.study.collect import study_fit
from taxofit.study.store import STUDY_FILE, pack_study, read_study, unpack_study

__all__ = ["STUDY_FILE", "pack_study", "read_study", "study_fit", "unpack_study"]
