from __future__ import annotations

import pickle
from typing import Any

import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.errors import ArchError


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_found_by_name_and_by_target_id(arch: Arch) -> None:
    assert get_arch(arch.name) is arch
    assert get_arch(f"{arch.name}:sramecc+:xnack-") is arch


@pytest.mark.parametrize("name", ["gfx900", "", "sm_90", "gfx94", "GFX942", 942])
def test_unknown_names_the_known(name: Any) -> None:
    with pytest.raises(ArchError, match=r"known: gfx90a, gfx942, gfx950, gfx1100, .*gfx1201, gfx1250") as error:
        get_arch(name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_usable_as_a_cache_key_and_across_processes(arch: Arch) -> None:
    copy = pickle.loads(pickle.dumps(arch))
    assert copy == arch
    assert hash(copy) == hash(arch)


def test_no_two_architectures_are_equal() -> None:
    assert len(set(ARCHS)) == len(ARCHS)
