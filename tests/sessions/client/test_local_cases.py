"""The hard cases on the Python API in this process."""

import pytest
from case_rig import OpenService, local_cases
from case_suite import CaseSuite


class TestLocalCases(CaseSuite):
    """The suite, on `LocalSession`."""

    @pytest.fixture
    def open_service(self) -> OpenService:
        return local_cases
