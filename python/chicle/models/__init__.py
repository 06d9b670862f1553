"""From measurements to records. Everything here is post-processing: it cannot reach the private data.

`base` says what a model is. `independent`, `descent`, `denoised`, `composed`, `dpsyn` and `pgm` hold one family each;
`gum`, `mcf`, `descent` and `draws` hold the record kernels that they use. `evidence` puts public rows beside any model.
"""

from chicle.models.base import Model, model_of, register_model
from chicle.models.composed import ComposedModel
from chicle.models.contrasted import ContrastModel
from chicle.models.denoised import DenoisedModel
from chicle.models.descent import DescentModel
from chicle.models.dpsyn import DPSynModel
from chicle.models.evidence import EvidenceModel
from chicle.models.independent import IndependentModel
from chicle.models.interactions import InteractionModel
from chicle.models.mixture import MixtureModel
from chicle.models.pgm import GraphicalModel
from chicle.models.reweighted import ExplicitModel, WeightedRowsModel

__all__ = [
    "ComposedModel",
    "ContrastModel",
    "DPSynModel",
    "DenoisedModel",
    "DescentModel",
    "EvidenceModel",
    "ExplicitModel",
    "GraphicalModel",
    "IndependentModel",
    "InteractionModel",
    "MixtureModel",
    "Model",
    "WeightedRowsModel",
    "model_of",
    "register_model",
]
