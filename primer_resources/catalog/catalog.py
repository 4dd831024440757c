"""The catalog: the one wiring place of its repositories."""

from datetime import datetime
from random import Random

from primer_core.retry import RetryPolicy
from primer_resources.catalog.access import AccessLookup
from primer_resources.catalog.acls import Acls
from primer_resources.catalog.backfills import Backfills
from primer_resources.catalog.body_policies import BodyPolicies
from primer_resources.catalog.coherence import Coherence
from primer_resources.catalog.contents import Contents
from primer_resources.catalog.copies import Copies
from primer_resources.catalog.database import Database
from primer_resources.catalog.dead_letters import DeadLetters
from primer_resources.catalog.deployments import Deployments
from primer_resources.catalog.documents import Documents
from primer_resources.catalog.events import Events
from primer_resources.catalog.figures import Figures
from primer_resources.catalog.gate import GateLookup
from primer_resources.catalog.generations import Generations
from primer_resources.catalog.held_deletes import HeldDeletes
from primer_resources.catalog.holders import Holders
from primer_resources.catalog.inbox import Inbox
from primer_resources.catalog.jobs import Jobs
from primer_resources.catalog.lanes import Lanes
from primer_resources.catalog.ledger import Ledger
from primer_resources.catalog.lookup import Lookup
from primer_resources.catalog.object_owners import ObjectOwners
from primer_resources.catalog.parses import Parses
from primer_resources.catalog.plan_figures import PlanFigures
from primer_resources.catalog.promotions import Promotions
from primer_resources.catalog.pulse import Pulses
from primer_resources.catalog.purges import Purges
from primer_resources.catalog.queue import Queue
from primer_resources.catalog.replays import Replays
from primer_resources.catalog.reviews import Reviews
from primer_resources.catalog.sources import Sources
from primer_resources.catalog.stored_states import StoredStates
from primer_resources.catalog.tenants import Tenants
from primer_resources.catalog.tokens import Tokens
from primer_resources.clock import Clock


class Catalog:
    """All that Primer knows about documents, by repository."""

    def __init__(self, url: str, clock: Clock, random: Random, policy: RetryPolicy | None = None) -> None:
        self.database = self._open(url, clock)
        self.deployments = Deployments(self.database)
        self.tenants = Tenants(self.database)
        self.sources = Sources(self.database)
        self.acls = Acls(self.database)
        self.access = AccessLookup(self.database)
        self.documents = Documents(self.database)
        self.held_deletes = HeldDeletes(self.database)
        self.contents = Contents(self.database)
        self.states = StoredStates(self.database)
        self.purges = Purges(self.database, self.states)
        self.object_owners = ObjectOwners(self.database)
        self.coherence = Coherence(self.database)
        self.parses = Parses(self.database)
        self.holders = Holders(self.database)
        policy = policy or RetryPolicy()
        self.ledger = Ledger(self.database, random)
        self.dead_letters = DeadLetters(self.database, self.ledger)
        self.jobs = Jobs(self.database, policy, random, self.ledger, self.dead_letters)
        self.queue = Queue(self.database)
        self.events = Events(self.database, policy, random)
        self.plan_figures = PlanFigures(self.database)
        self.reviews = Reviews(self.database, self.deployments, self.jobs)
        self.replays = Replays(self.database, self.ledger, self.jobs, self.reviews, self.parses)
        self.backfills = Backfills(self.database, self.deployments, self.replays, self.jobs, self.dead_letters, self.ledger, self.sources)
        self.promotions = Promotions(self.database, self.deployments, self.backfills, self.ledger)
        self.body_policies = BodyPolicies(self.database, self.states, self.ledger, self.reviews, self.parses)
        self.lanes = Lanes(self.database)
        self.copies = Copies(self.database, self.jobs)
        self.inbox = Inbox(self.database, self.deployments, self.sources, self.documents, self.acls, self.copies, self.events)
        self.generations = Generations(self.database, self.lanes, self.copies, self.ledger)
        self.lookup = Lookup(self.database, self.ledger)
        self.gate = GateLookup(self.database)
        self.pulses = Pulses(self.database, self.sources)
        self.figures = Figures(self.database)
        self.tokens = Tokens(self.database)

    @staticmethod
    def _open(url: str, clock: Clock) -> Database:
        return Database(url, clock)

    def now(self) -> datetime:
        """The time by which generations and leases are judged."""
        return self.database.now()

    def close(self) -> None:
        """Close all connections."""
        self.database.close()
