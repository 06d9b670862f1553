"""Partitions: a table for each of many groups of rows, such as states, made together."""

from chicle.partition.declared import Partition, as_partition
from chicle.partition.model import PartitionedModel
from chicle.partition.run import run_partitioned

__all__ = ["Partition", "PartitionedModel", "as_partition", "run_partitioned"]
