"""Partitions: a table for each of many groups of rows, such as states, made together."""

from chicle.partition.declared import Partition, chosen_partition
from chicle.partition.model import PartitionedModel, seen_domain
from chicle.partition.planned import plan_steps
from chicle.partition.run import run_partitioned
from chicle.partition.sizes import SizesBudget, sizes_budget

__all__ = [
    "Partition",
    "PartitionedModel",
    "SizesBudget",
    "chosen_partition",
    "plan_steps",
    "run_partitioned",
    "seen_domain",
    "sizes_budget",
]
