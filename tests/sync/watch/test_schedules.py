"""When a whole sync is due, and why."""

from svc_cli.sync.watch.schedules import PERIOD_S, Agenda, Naps


def test_the_first_is_due_at_once_and_then_one_every_ten_minutes() -> None:
    agenda = Agenda()
    assert [agenda.take(100 + later_s) for later_s in (0, PERIOD_S - 1, PERIOD_S)] == ["start", None, "period"]
    assert agenda.counts == {"start": 1, "period": 1}


def test_the_earliest_of_several_reasons_counts_and_is_counted_once() -> None:
    agenda = Agenda()
    agenda.take(0)
    for call in (("calm", 10, 5), ("overflow", 10), ("flush", 11)):
        agenda.call(*call)
    assert [agenda.take(now_s) for now_s in (12, 20)] == ["overflow", None]
    assert agenda.counts == {"start": 1, "overflow": 1}


def test_after_trouble_it_is_tried_again_later_each_time_and_at_once_after_the_next_trouble() -> None:
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


def test_a_clock_that_ran_ahead_means_a_sleep_once() -> None:
    naps = Naps()
    clocks = [(100, 5000), (101, 5001.5), (102, 8000), (103, 8001)]
    assert [naps.has_slept(*each) for each in clocks] == [False, False, True, False]
