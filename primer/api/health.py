"""Routes of the deployment itself: is it there, and how does it do."""

from collections.abc import Iterator
from datetime import datetime

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from primer.api.auth import Reader
from primer.api.context import InContext, problems
from primer.api.models import HealthOut
from primer_resources.catalog.figures import QueueFigures
from primer_resources.catalog.sources import Source

router = APIRouter(tags=["health"])


@router.get("/healthz", responses=problems())
def healthz(context: InContext) -> HealthOut:
    """Whether the catalog answers."""
    context.catalog.deployments.live()
    return HealthOut(status="ok")


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems(401)}
)
def metrics(context: InContext, token: Reader) -> Response:
    """Figures in the text form of Prometheus, of the sources of the token's tenant."""
    sources = context.sources(token.tenant_id)
    registry = CollectorRegistry(auto_describe=False)
    queue = context.catalog.figures.queue([source.source_id for source in sources])
    registry.register(_Figures(queue, sources, context.catalog.now()))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Figures(Collector):
    """Figures of one moment."""

    def __init__(self, queue: QueueFigures, sources: list[Source], now: datetime) -> None:
        self.queue, self.sources, self.now = queue, sources, now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The figures."""
        jobs = GaugeMetricFamily("primer_jobs", "Unfinished jobs.", labels=["state", "lane"])
        for (state, lane), count in self.queue.jobs.items():
            jobs.add_metric([state, lane], count)
        oldest = GaugeMetricFamily("primer_oldest_job_age_seconds", "Since the oldest change that is not indexed yet.", labels=["lane"])
        for lane, since in self.queue.oldest_event_time.items():
            oldest.add_metric([lane], self._age(since))
        dead = GaugeMetricFamily("primer_dead_letters", "Jobs that need a person.", labels=["reason"])
        for reason, count in self.queue.dead.items():
            dead.add_metric([reason], count)
        waiting = GaugeMetricFamily("primer_events_waiting", "Events that wait for their source.", labels=["source"])
        age = GaugeMetricFamily("primer_oldest_event_age_seconds", "Since the oldest event that waits came in.", labels=["source"])
        buried = GaugeMetricFamily("primer_events_dead", "Events that need a person.", labels=["source"])
        for name, (count, came, ended) in self.queue.events.items():
            waiting.add_metric([name], count)
            buried.add_metric([name], ended)
            age.add_metric([name], 0 if came is None else self._age(came))
        good = GaugeMetricFamily("primer_seconds_since_good_sync", "Since the last sync that met no problem ended.", labels=["source"])
        failing = GaugeMetricFamily("primer_source_failing", "1 where the last sync of the source told of an error.", labels=["source"])
        held = GaugeMetricFamily("primer_deletes_held", "Deletes that wait to be confirmed.", labels=["source"])
        for source in self.sources:
            if source.last_good_at is not None:
                good.add_metric([source.source_id], self._age(source.last_good_at))
            failing.add_metric([source.source_id], source.last_error is not None)
            held.add_metric([source.source_id], source.held_count)
        yield from (jobs, oldest, dead, waiting, age, buried, good, failing, held)

    def _age(self, since: datetime) -> float:
        return max(0.0, (self.now - since).total_seconds())
