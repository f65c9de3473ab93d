"""Every family of `contract.CASES` holds to every rule of the loop contract."""

import pytest
from contract import CASES, CHECKS, Check, ContractCase


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_kernel_holds_to_the_contract(case: ContractCase, check: Check) -> None:
    check(case)
