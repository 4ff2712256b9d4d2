"""What /metrics says, parsed again as Prometheus does."""

from __future__ import annotations

from django.core.cache import cache
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from argus import metrics

#: By name, then by the values of the labels in the alphabetical order of these.
Values = dict[str, dict[tuple[str, ...], float]]


def look() -> list[Metric]:
    """Every family as it is now, nothing kept."""
    cache.clear()
    return list(text_string_to_metric_families(metrics.text(timezone.now()).decode()))


def values() -> Values:
    """Every sample by its name and labels; a family without any has an empty entry."""
    return {
        family.name: {tuple(one.labels.values()): one.value for one in family.samples}
        for family in look()
    }
