"""A canary is safe when those who must find it do, and nobody else does."""

from primer_core.golden.canaries import CanaryOutcome, CanaryReport
from primer_core.golden.questions import Canary

PAY = Canary("drive/HR/pay.xlsx", "pay by level", ("hr",), ("everyone",))


def test_only_a_known_canary_found_by_its_own_and_by_nobody_else_is_safe() -> None:
    assert CanaryReport("v2", (CanaryOutcome(PAY, True),)).passes
    gone, lost, leaked = (
        CanaryOutcome(PAY, False),
        CanaryOutcome(PAY, True, ("hr",)),
        CanaryOutcome(PAY, True, (), (("everyone", "drive/x"),)),
    )
    assert not any(CanaryReport("v2", (outcome,)).passes for outcome in (gone, lost, leaked))
    report = CanaryReport("v2", (CanaryOutcome(PAY, True), leaked, lost, gone))
    assert list(report.reasons) == [
        "drive/HR/pay.xlsx: everyone must not find it and does, as drive/x",
        "drive/HR/pay.xlsx: hr must find it and does not",
        "drive/HR/pay.xlsx: no source has this document",
    ]
