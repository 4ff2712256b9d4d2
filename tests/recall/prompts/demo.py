"""The demo's memory: near-misses, and its facts asked for in other words than the notes'."""

from __future__ import annotations

from dataclasses import dataclass

from tests.recall.prompts import PROMPTS, Prompt, drawn, halved
from tests.recall.prompts.everyday import everyday
from tests.recall.prompts.general import general
from tests.recall.prompts.logs import logs
from tests.recall.prompts.tongues import tongues

#: Off-topic prompts of each kind.
SHARES = {"general": 50, "everyday": 60, "tongue": 30, "log": 20, "near miss": 40}

assert sum(SHARES.values()) == PROMPTS

#: An entity of another project, or a question about our own whose answer nobody recorded.
NEAR_MISSES = """\
Which MySQL version and port does the warehouse cluster of granary use?
How long is the upload timeout in the lighthouse mobile app?
When is the feature freeze of the granary release this winter?
Which Ruby version do I need to build lighthouse?
How do I load the fixture data for granary on my laptop?
What was the root cause of the duplicate e-mails in lighthouse?
Should granary send its metrics with StatsD or with Prometheus?
Who is on call for the lighthouse project next weekend?
Which port does the Grafana of the granary cluster listen on?
How many replicas does the search cluster of lighthouse run?
Why does the checkout page of granary scroll sideways in Firefox?
How do I publish the lighthouse app to the Play Store?
What separates the fields of the granary log format?
Which region do the lighthouse backups lie in?
How often does the granary billing job run?
What is the licence of the fonts that lighthouse ships?
Which time zone do the granary reports use for a closed month?
How do we sign the lighthouse installers for macOS?
Must granary tickets be numbered without gaps as well?
What TTL do the signed image links of lighthouse have?
How many berths does the biggest marina in Sweden have?
Which e-mail provider does harbor send its confirmations with?
What is the maximum number of boats per customer in harbor?
Which colours does the tidepool palette use for a warning?
When does the TLS certificate of the tidepool site expire?
Who approves a refund of more than a thousand euros?
How large may an avatar be that a skipper uploads?
Which test runner does tidepool use, and how do I debug it?
In which bucket are the nightly backups of harbor kept?
How are harbor's access tokens signed, and with which key?
What does the harbor onboarding guide say about laptops?
Which languages is the tidepool interface translated into?
How many requests a minute may a partner send to harbor?
Where do I find the designs of the new tidepool start page?
What is the wifi password of the harbor office in Kiel?
Which linter rules are switched off for generated code?
How do we anonymise customers in a database dump?
When did Mira start to work on tidepool?
What is the monthly bill of the hosting provider?
Which feature flags are on for the pilot customers?
Does harbor support paying a berth with a voucher?
Which map tiles does tidepool load, and who pays for them?
What are the opening hours of the harbor master?
How does a skipper cancel a booking by telephone?""".splitlines()


@dataclass(frozen=True)
class Fact:
    """What was recorded: strings of which a right note holds one, and ways to ask for it."""

    holds: tuple[str, ...]
    project: str
    asks: str

    def prompts(self) -> list[Prompt]:
        return [
            Prompt(line, "on topic", self.project, self.holds) for line in self.asks.splitlines()
        ]


FACTS = (
    Fact(("READ COMMITTED",), "harbor", """\
How could two boats end up in the same berth in March?
What was the reason that a place was sold twice?
Why did harbor confirm overlapping reservations for one berth?
Which isolation level was in force when the double bookings happened?
Explain the race between the availability check and the insert that we had
Root cause of the double bookings?
I am writing the post-mortem of the double bookings, what went wrong?"""),
    Fact(("exclusion constraint",), "harbor", """\
Why did we not use advisory locks against overlapping bookings?
How do we keep two bookings from overlapping in the database?
What speaks against locking in the API: does the nightly importer go through it?
What did we choose to prevent overlapping bookings, and why?
Which writer bypasses the API at night and needed the constraint?
I want to guard the bookings table with an advisory lock, any objections?
Was the decision about the exclusion constraint ever explained?"""),
    Fact(("0042_no_overlap", "rangetypes"), "harbor", """\
Which migration fixed the double bookings?
What does the migration 0042 do to bookings?
Which Postgres extension does the no overlap constraint need?
Do I have to install btree_gist before I migrate?
Where is the gist exclude on berth_id and during defined?
Restore bookings locally, what must exist for the EXCLUDE USING gist part?
How was the sale of one berth to two boats repaired in the schema?"""),
    Fact(("ACCESS EXCLUSIVE",), "harbor", """\
How long does the overlap migration block the bookings table?
Can we run the constraint migration during the day or does it lock bookings?
What kind of lock does validating the bookings constraint take?
How many seconds did the migration take on a copy of production?
How many rows did bookings have when we tried the migration?
I plan to roll out the no-overlap migration at noon, is that safe?"""),
    Fact(("on port 5433",), "harbor", """\
Which port does db-staging listen on?
Which Postgres does the harbor staging database run?
Connect psql to the staging database of harbor for me
Is staging on the same PostgreSQL version as production?
Write the DATABASE_URL for db-staging into the smoke test settings
My connection to staging on 5432 is refused, what is the right port?
Can I use a feature of PostgreSQL 16 on harbor staging?
What database server do we test against before production?"""),
    Fact(("make lint",), "harbor", """\
What do I have to run before I open a pull request?
Open a pull request for this branch of harbor please
Which make target checks the style before review?
The change is done, prepare the pull request
Is there anything to do before a PR in harbor?
Which command should run before asking for a review?"""),
    Fact(("force-push",), "harbor", """\
May I rewrite the history of main?
Can I push -f to the main branch after squashing?
Clean up the commits on main and push them with force
What is the rule about force pushing?
I rebased main, how do I get it to the remote?
Is pushing to main allowed or do we go through pull requests?"""),
    Fact(("idempotency keys",), "harbor", """\
Where do the idempotency keys live?
Should I store idempotency keys of a booking in Redis?
Why are idempotency keys written in Postgres?
Which store did we pick so that a repeated request books only once?
Move the idempotency keys to Redis to take load off the database
Must the idempotency key be in the same transaction as the booking?"""),
    Fact(("`MERGE` has no",), "harbor", """\
Can I use MERGE with RETURNING on our staging server?
From which PostgreSQL version on does MERGE return rows?
Write the upsert with MERGE ... RETURNING please
Why does MERGE fail with a syntax error near RETURNING?
Is there a RETURNING clause for merge statements?"""),
    Fact(("local time while the API",), "tidepool", """\
Why was the occupancy chart empty at night?
The chart shows no occupancy after twelve at night, have we seen that before?
What was wrong with the day range that the chart asked for?
Does the API expect UTC or local time for a day range?
People in Kiel saw an empty chart after midnight, what was the cause?
Which time zone mistake did the dashboard client make?"""),
    Fact(("utcRange.ts",), "tidepool", """\
Where does the day range of the chart come from?
Which file builds the UTC range for the occupancy chart?
Which time zones do the chart tests cover?
Do our chart tests include Auckland or only Berlin?
I need a day range in UTC in tidepool, is there a function for that already?
In which module did we repair the time range of the chart?"""),
    Fact(("server-sent events instead", "html.spec.whatwg.org"), "tidepool", """\
Why does the live map not use WebSockets?
WebSockets or server-sent events for live berths, what did we decide?
What does the proxy in the harbor offices do to websocket connections?
Rewrite the live berth map with socket.io websockets
Is the traffic of the live map one-way or two-way?
How does the dashboard get live updates of berths?
Which transport pushes berth changes to the browser?"""),
    Fact(("/api/v2/berths/events",), "tidepool", """\
From which endpoint does the berth map stream its events?
How often does the event stream send a heartbeat?
After how many seconds without heartbeat is the berth stream dead?
Which path serves the live berth events?
What is the url of the event stream that tidepool reads?
Set the proxy's read timeout above the heartbeat interval of the stream"""),
    Fact(("must be built with Node",), "tidepool", """\
Which Node does tidepool need?
What does .nvmrc of tidepool pin?
Write a Dockerfile that builds tidepool, which node image do I take?
CI of tidepool fails with a syntax error, which node version is right?
Can I build tidepool with Node 18?
Which node version do we use for the dashboard?
Set up the build machine for the tidepool frontend with the right node"""),
    Fact(("new dependency",), "tidepool", """\
Add lodash to tidepool for the grouping
May I install a date library in tidepool?
Is it okay to add a package to the tidepool lock file?
Do I need permission for a new npm dependency in tidepool?
What is the rule about new dependencies?
Can I add a new dependency to tidepool for this chart?"""),
    Fact(("Rechnungsnummern", "counter row"), "harbor", """\
Wer vergibt die Rechnungsnummern?
Dürfen bei den Rechnungsnummern Lücken entstehen?
Warum darf die API keine Rechnungsnummern vergeben?
Müssen Rechnungsnummern lückenlos sein?
Kann ich die Rechnungsnummer direkt in der API erzeugen?
Welche Komponente erzeugt die Nummern der Rechnungen?"""),
    Fact(("counter row",), "harbor", """\
Why do we not take invoice numbers from a sequence?
How does the worker get the next invoice number?
Does a Postgres sequence leave gaps when a transaction rolls back?
Use nextval of a sequence for the invoice numbers
Which row does the worker lock for invoice numbers?
How are gaps in invoice numbers avoided?"""),
    Fact(("03:00 UTC", "payments/sandbox"), "harbor", """\
At what time is the payment sandbox reset?
Captures failed in the sandbox at five past three, is that a bug?
Payments in the test environment break every night, why?
When does the sandbox of the payment provider reset?
Should I investigate failed captures shortly after 03:00?
What happens to the payment sandbox at night?"""),
    Fact(("semicolons",), "tidepool", """\
Which separator does the CSV export use?
Why does exportCsv write semicolons?
Does the occupancy export use commas between values?
What does Excel with German settings do with comma files?
Change exportCsv() to commas, that is the standard
Which delimiter do German users need in the exported file?"""),
    Fact(("6380",), "harbor", """\
预发环境的 Redis 端口是多少？
预发的缓存连不上，Redis 应该用哪个端口
Redis 用 6379 还是 6380？
在预发环境里怎么配置 Redis 的端口？
请把预发环境的 Redis 端口写进配置"""),
    Fact(("hydrate()",), "tidepool", """\
Why did the login page flicker?
What caused the flicker in Safari?
When is the theme class set, before or after hydrate?
The sign-in page flashes in Safari before the theme appears, what was it last time?
Root cause of the Safari flicker on the login page?
Does Safari paint before hydrate has run?"""),
    Fact(("10 and 24 August",), "harbor", """\
When is the deploy freeze in August?
Can I deploy harbor to production on 15 August?
Why are production deploys stopped in the summer?
Schedule the production deploy of harbor for the week of 17 August 2026
Until when are there no production deploys because of the regatta?
Which dates does the regatta block for releases?"""),
    Fact(("harbor/failover",), "harbor", """\
Where is the failover runbook?
Link to the runbook for a failover please
What should I read before the failover drill on Friday?
Is there a phone list for a failover?
Which wiki page describes the failover?
The primary is down, which runbook do I follow for the failover?"""),
    Fact(("DNS TTL",), "harbor", """\
What is the TTL of api.harbor.example?
Why did we lower the DNS TTL?
How many seconds is the DNS TTL of the harbor API?
What did we change so that a failover takes less than four minutes?
How long do clients cache the DNS entry of the API?
Raise the TTL of api.harbor.example to an hour"""),
    Fact(("must be 10 seconds",), "harbor", """\
What is BOOKING_TIMEOUT set to?
After how many seconds does a booking request time out?
Where is the timeout of booking requests configured?
How long does the client wait for a booking?
Is the booking timeout still 30 seconds?
Which setting in harbor/http.py limits a booking request?
Let the smoke test wait as long as a booking request may take"""),
    Fact(("make seed",), "harbor", """\
How do I get test data into my local harbor database?
What does make seed need?
Which value must HARBOR_ENV have to load the seed data?
Does seeding harbor need an empty database?
Fill the development database of harbor with sample bookings
A new colleague wants to load seed data, what must be set?
Which command loads the seed data of harbor?"""),
    Fact(("npm run release",), "tidepool", """\
How is tidepool released?
Which command publishes a new tidepool version?
What does npm run release wait for?
Does the tidepool release tag the commit by itself?
Release tidepool to production now
How do I ship the dashboard?"""),
)  # fmt: skip


def off_topic() -> list[Prompt]:
    """Two hundred prompts that nothing in the demo's memory helps with."""
    pools = {
        "general": general(),
        "everyday": everyday(),
        "tongue": tongues(),
        "log": logs(),
        "near miss": NEAR_MISSES,
    }
    return halved(
        Prompt(line, kind, "tidepool" if "tidepool" in line else "harbor")
        for kind, lines in pools.items()
        for line in drawn(lines, SHARES[kind], salt=kind)
    )


def on_topic() -> list[Prompt]:
    """Every way to ask for every fact, as many as there are prompts in a set."""
    every = {one.text: one for fact in FACTS for one in fact.prompts()}
    wordings = [*every, *(f"Before I touch the code: {line}" for line in every)][:PROMPTS]
    bare = {f"Before I touch the code: {line}": one for line, one in every.items()} | every
    return halved(
        Prompt(line, "on topic", bare[line].project, bare[line].holds) for line in wordings
    )
