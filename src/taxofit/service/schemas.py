"""What goes in and comes out, as pydantic models; OpenAPI is made from them."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (pydantic reads it)
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

if TYPE_CHECKING:
    from taxofit.service.row_format import RowFormat
    from taxofit.service.settings import ServiceSettings

__all__ = [
    "ExplainRequest",
    "Explanation",
    "Liveness",
    "ModelInfo",
    "PredictRequest",
    "Predictions",
    "Readiness",
    "TopPredictions",
    "TopRequest",
    "with_rows",
]

Label = str | int | float
Probability = Annotated[
    float,
    BeforeValidator(lambda p: min(max(p, 0.0), 1.0)),  # sums of many may be 1 + 2e-16
    Field(ge=0, le=1, examples=[0.87]),
]
Version = Annotated[
    str,
    Field(
        description="Which model answered; equal for equal models.", examples=["0f3a5e1b9c7d2468"]
    ),
]
MAX_TOP = 100
MAX_FEATURES = 100
STRICT = ConfigDict(strict=True)  # "5" and true are no numbers


class _Answer(BaseModel):
    model_config = ConfigDict(protected_namespaces=())  # `model_version` is what people expect


Path = Annotated[
    list[Label],
    Field(
        description="From the top of the original taxonomy to the label.",
        examples=[["Home", "Kitchen", "Kettles"]],
    ),
]


class Prediction(_Answer):
    """The leaf that a row belongs to, or with `min_confidence` perhaps a category above it."""

    label: Label | None = Field(
        description="Null, and the path empty, where no category is as probable as "
        "`min_confidence`; never without it.",
        examples=["Kettles"],
    )
    path: Path
    probability: Probability = Field(description="That the label is right.")


class Leaf(_Answer):
    """A leaf that a row may belong to."""

    label: Label = Field(examples=["Kettles"])
    path: Path
    probability: Probability


class Predictions(_Answer):
    """One prediction for each row, in order."""

    model_version: Version
    predictions: list[Prediction]


class TopPredictions(_Answer):
    """The most probable leaves of each row, best first; rows in order."""

    model_version: Version
    predictions: list[list[Leaf]]


class FeatureShare(_Answer):
    """What one feature did for a candidate."""

    name: str = Field(examples=["kettle"])
    value: float = Field(description="In the row.")
    weight: float = Field(description="The candidate's own.")
    contribution: float = Field(
        description="value · (weight - weight of the strongest rival); without one, value · weight."
    )


class Candidate(_Answer):
    """A child that the row could have gone to."""

    label: Label
    score: float = Field(description="θ·x of its own model.")
    probability: Probability = Field(description="Of the row's leaf being under it.")
    features: list[FeatureShare] = Field(description="Those that count most, largest first.")


class Step(_Answer):
    """One step down: the node that was chosen, and the candidates, highest score first."""

    label: Label
    candidates: list[Candidate]


class Explanation(_Answer):
    """Why a row gets its label: the steps from the root to the leaf."""

    model_version: Version
    label: Label
    path: list[Label]
    probability: Probability
    steps: list[Step]


class Liveness(BaseModel):
    """The process answers."""

    status: str = Field(examples=["live"])


class Readiness(_Answer):
    """The model answers. A failed reload leaves the earlier model serving, and is told here."""

    status: str = Field(examples=["ready"])
    model_version: Version
    reload_error: str | None = Field(
        description="Why the model in the folder is not the one that is served."
    )


class ModelInfo(_Answer):
    """What is served."""

    name: str = Field(examples=["shop-model"])
    version: Version
    taxofit_version: str | None
    loaded_at: datetime
    method: str = Field(examples=["global-inf"])
    C: float
    features: int = Field(description="Columns of X after encoding.")
    columns: list[str] = Field(description="That a row must have; empty where rows are plain.")
    leaves: int = Field(description="That can be predicted.")
    nodes: int = Field(description="Of the original taxonomy.")
    nodes_kept: int = Field(description="Of the repaired taxonomy.")
    depth: int


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[int, BeforeValidator(_whole)]  # 5.0 is an integer in JSON


class PredictRequest(BaseModel):
    """Rows to predict, and how sure a prediction must be."""

    model_config = STRICT
    rows: list[Any]
    min_confidence: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Stop at a category where nothing below it is this probable. Without it every "
        "prediction is a leaf.",
        examples=[0.6],
    )


class TopRequest(BaseModel):
    """Rows, and how many leaves to name for each."""

    model_config = STRICT
    rows: list[Any]
    k: Count = Field(default=5, ge=1, le=MAX_TOP)


class ExplainRequest(BaseModel):
    """A row, and how much to tell of it."""

    model_config = STRICT
    row: Any
    n_candidates: Count = Field(default=5, ge=1, le=MAX_TOP)
    n_features: Count = Field(default=10, ge=0, le=MAX_FEATURES)


def with_rows(
    request: type[BaseModel], rows: RowFormat, settings: ServiceSettings
) -> type[BaseModel]:
    """Return the type of a request whose rows are those that a model reads."""
    row = rows.row_type(settings.max_text_length)
    example = rows.example()
    examples = None if example is None else [example]
    fields: dict[str, Any] = {}
    if "row" in request.model_fields:
        fields["row"] = (Annotated[row, Field(examples=examples)], ...)
    if "rows" in request.model_fields:
        several = Field(
            min_length=1, max_length=settings.max_rows, examples=examples and [examples]
        )
        fields["rows"] = (Annotated[list[row], several], ...)  # type: ignore[valid-type]
    return create_model(request.__name__, __base__=request, __doc__=request.__doc__, **fields)
