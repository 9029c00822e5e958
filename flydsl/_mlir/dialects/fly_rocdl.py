"""Types and address spaces of AMD GPUs in FlyDSL's own dialects."""

from flydsl.expr.memory import AddressSpace as TargetAddressSpace

__all__ = ["TargetAddressSpace"]
