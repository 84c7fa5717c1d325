"""The schedule of full syncs, and detecting that the system slept."""

from svc_cli.sync.watch.settling import PERIOD_S, Agenda, Naps


def test_first_full_sync_is_due_at_once_and_the_next_after_the_period() -> None:
    agenda = Agenda()
    assert [agenda.take(100 + later_s) for later_s in (0, PERIOD_S - 1, PERIOD_S)] == ["start", None, "period"]
    assert agenda.counts == {"start": 1, "period": 1}


def test_several_requests_cause_one_sync_counted_for_the_earliest() -> None:
    agenda = Agenda()
    agenda.take(0)
    for call in (("calm", 10, 5), ("overflow", 10), ("flush", 11)):
        agenda.call(*call)
    assert [agenda.take(now_s) for now_s in (12, 20)] == ["overflow", None]
    assert agenda.counts == {"start": 1, "overflow": 1}


def test_pause_after_a_failed_sync_doubles_up_to_a_minute_and_is_reset_by_success() -> None:
    agenda = Agenda()
    agenda.take(0)
    pauses = []
    for _ in range(8):
        agenda.end_in_trouble(0)
        pauses.append(agenda.due_s)
        agenda.take(agenda.due_s)
        agenda.due_s = PERIOD_S
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    agenda.end_well()
    agenda.end_in_trouble(0)
    assert agenda.due_s == 1


def test_sleep_is_detected_once_when_one_clock_jumps_ahead() -> None:
    naps = Naps()
    clocks = [(100, 5000), (101, 5001.5), (102, 8000), (103, 8001)]
    assert [naps.has_slept(*each) for each in clocks] == [False, False, True, False]
