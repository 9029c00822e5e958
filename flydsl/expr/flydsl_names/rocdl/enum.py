"""FlyDSL's path of the enumerations of AMD GPUs."""

from flydsl.expr.memory.tensors import AddressSpace
from flydsl.expr.rocdl.waits import SyncScope

__all__ = ["AddressSpace", "SyncScope", "TargetAddressSpace"]

TargetAddressSpace = AddressSpace
