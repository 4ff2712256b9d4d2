"""The extractive distiller: what becomes a note, what must not, and that every note is a quote."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.llm.extractive import cues
from memory.llm.extractive.distiller import NOTES_MAX, SPAN_CHARS_MAX, Extractive
from memory.llm.extractive.pieces import cut
from memory.llm.extractive.titles import TITLE_CHARS_MAX, title_of
from memory.llm.extractive.turns import CONTEXT_CHARS_MAX
from memory.llm.ports import Candidate, Origin, Passage
from tests.growth import GROWTH_MAX, growth

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def passages(*turns: tuple[str, str], kind: str = "turn") -> list[Passage]:
    return [Passage(at, role, body, NOON, kind) for at, (role, body) in enumerate(turns)]


def distill(*turns: tuple[str, str], kind: str = "turn") -> list[Candidate]:
    return list(
        Extractive().distill(passages(*turns, kind=kind), origin=Origin("distill")).candidates
    )


def user(body: str) -> tuple[str, str]:
    return "user", body


def agent(body: str) -> tuple[str, str]:
    return "assistant", body


WANTED = [
    ("decision", user("We decided to keep sessions in Postgres because Redis lost them twice.")),
    ("decision", user("Wir haben uns entschieden, die Sitzungen in Postgres zu speichern.")),
    ("decision", user("我们决定改用 PostgreSQL，因为 SQLite 不支持并发写入。")),
    ("root-cause", agent("The problem was that `retry()` ate the timeout, so the queue hung.")),
    ("root-cause", agent("Die Ursache war ein falscher Pfad in `settings.toml`.")),
    ("fix", agent("I fixed the flaky upload by setting `UPLOAD_TIMEOUT` to 30 s in deploy.yml.")),
    ("instruction", user("Always run the linter before you commit, and never push to main.")),
    ("instruction", user("请记住：提交之前必须运行 make lint。")),
    ("preference", user("I prefer small commits with one change each.")),
    ("correction", user("No, actually the API listens on port 8443, not 8080.")),
    ("fact", user("My team uses pnpm for every frontend package.")),
]  # fmt: skip


def test_it_hears_a_lone_prompt_as_said_to_an_agent() -> None:
    said = "The orders endpoint listens on port 9400, because the balancer expects it."
    assert [note.content for note in distill(user(said))] == [said]


def test_it_makes_no_note_of_what_was_a_secret() -> None:
    said = "Here is the key: [redacted:github_token], please never commit it to the repository."
    assert distill(user(said), agent("Understood.")) == []


@pytest.mark.parametrize(("tag", "turn"), WANTED)
def test_it_notes_what_a_later_session_needs(tag: str, turn: tuple[str, str]) -> None:
    notes = distill(user("the nightly job is odd, have a look"), turn, agent("Let me go on."))
    assert [note.content for note in notes] == [turn[1]]
    assert notes[0].tags == (tag,)
    assert 0 < notes[0].importance <= 1


UNWANTED = [
    agent("Let me look at the settings file first."),
    agent("Now I'll update the imports in `main.py` and run the tests:"),
    agent("Perfect! All tests pass."),
    agent("Good catch. Let me fix `load()` because it is broken:"),
    agent("Done. Committed."),
    agent("Would you like me to use Postgres instead of SQLite here?"),
    agent('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}'),
    agent("```python\nwe_decided = 'always use tabs because spaces are wrong'\n```"),
    agent("- `a.py`\n- `b.py`\n- `c/d.py`"),
    user("thanks, great work, see you tomorrow!"),
    user("Why do we always use Redis for that?"),
    user("read src/main.py and tell me what it does"),
    user("ok, continue"),
    user("Traceback (most recent call last):\n  File \"/srv/a.py\", line 3\nKeyError: 'x'"),
    user('{"level":"error","msg":"never retry because the queue is full","port":8443}'),
]  # fmt: skip


@pytest.mark.parametrize("turn", UNWANTED)
def test_it_makes_no_note_of_talk_about_the_work(turn: tuple[str, str]) -> None:
    assert distill(user("hi"), turn, agent("Let me see.")) == []


LASTING = [
    user("My name is Petra and I own the billing service."),
    user("ask me before you touch anything under infra/"),
    user("don't mock the database in tests, use the container"),
    user("We target Node 20 and PostgreSQL 15."),
    user("the secrets come from Vault, path `kv/payments/prod`"),
    user("no, the staging cluster is in eu-west-1, not eu-central-1"),
    user("In Zukunft bitte keine neuen Makros in der Engine."),
    user("测试环境用的是 MySQL 8，端口 3307。"),
    agent("The linter needs Go 1.22, older versions lack `slices.Concat`."),
    agent("Run `task gen` after each change of `api.proto`, because what it makes is not in git."),
    agent(
        "`Lexer.parse()` returns an empty list for empty input and raises `SyntaxError` for `'`."
    ),
    agent("The metrics endpoint listens on port 9102; 9100 belongs to the node exporter."),
    agent("Der Importer darf höchstens 500 Zeilen schreiben, weil die Replik sonst zurückfällt."),
    agent("The image builds with Ruby 3 and needs PostgreSQL 15."),
    agent("The scan failed because two workers shared a directory. The fix was to use `tmp_path`."),
]


@pytest.mark.parametrize("turn", LASTING, ids=lambda turn: turn[1][:30])
def test_it_notes_what_outlives_the_work(turn: tuple[str, str]) -> None:
    notes = distill(user("hm"), turn, agent("ok"))
    assert "".join(turn[1].split()) == "".join("".join(n.content for n in notes).split())


@pytest.mark.parametrize("text", ["Step 2 is done", "on March 15", "Option 1", "All 42 of us"])
def test_it_takes_no_step_or_day_for_a_version(text: str) -> None:
    assert cues.EXACT.search("Node 20") and not cues.EXACT.search(text)


PASSING = [
    ("complaint", agent("`parseRow()` and `parseCell()` are nearly identical, both in `rows.py`.")),
    ("order", user("create a new folder `packages/ui` and move the buttons there")),
    ("order", user("i want you to write docs for `auth.py`, they need to cover each function")),
    ("order", user("docs -> site/docs\nimg -> site/static\nold -> attic")),
    ("order", user("let's use a modal there instead")),
    ("plan", agent("The plan is to introduce a `JobQueue` interface and to port both workers.")),
    ("plan", agent("Changes needed:\n\n1. `Worker` calls `drain()`\n2. `main.rs` waits")),
    ("plan", agent("Next, `OrderService` needs a `cancel()` method that calls `refund()`.")),
    ("log", agent("Renamed `user_id` to `account_id` in `schema.sql`, all models updated.")),
    ("log", agent("I've extracted `computeTax()` into `src/tax/rates.ts` and added tests for it.")),
    ("fragment", agent("Methods:\n\n- `open()` - returns its id\n- `close()` - returns nothing")),
    ("fragment", user("no, we put it in `sidebar.tsx` and show it on hover")),
    ("fragment", agent("No, `tar` works in all of them.")),
    ("talk", agent("You ran `npm start` in the wrong folder, so `package.json` was not found.")),
    ("talk", agent("As you can see, `make bench` takes 12 seconds on this machine.")),
    ("symptom", user("it says `port is already allocated` now")),
    ("proposal", agent("The fix is to call `flush()` before `close()` in `writer.go`.")),
    ("proposal", agent("We could use `sqlc` instead of the ORM, it generates typed queries.")),
    ("proposal", agent("There are three ways: `cron`, `systemd` and the queue in `jobs.py`.")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "turn"), PASSING, ids=lambda case: str(case)[:40])
def test_it_makes_no_note_of_what_passes_with_the_work(kind: str, turn: tuple[str, str]) -> None:
    assert distill(user("hm"), turn, agent("ok")) == [], kind


def test_it_takes_a_flow_as_a_whole_or_not_at_all() -> None:
    steps = ["`boot()` reads `app.toml`", "`pool()` opens the database on port 5432"]
    flow = f"The order at start is now:\n\n1. {steps[0]}\n2. {steps[1]}"
    assert [note.content for note in distill(user("hm"), agent(flow))] == [flow]
    longer = flow + "".join(f"\n{n}. `step_{n}()` stores its `part_{n}`" for n in range(3, 30))
    assert distill(user("hm"), agent(longer)) == []


RULE = "`CacheStore` keeps entries for 60 seconds and is owned by `Router`."
LOCK = "We will keep the lock in `RedisLock`, with a limit of 30 seconds, because it is fast."
OVERTURNED = [
    (agent(RULE), [user("go on"), agent("I renamed `CacheStore` to `TtlMap`.")]),
    (agent(RULE), [user("we no longer need `CacheStore`"), agent("True.")]),
    (agent(LOCK), [user("wait, why would we use RedisLock?"), agent("You're right, too much.")]),
    (user("We keep the flags in `flags.json`."), [agent("ok"), user("actually revert that")]),
    (agent("The problem is that `ctx` is nil in `Serve()`, it is set later."), [agent("Fixed.")]),
    (
        agent("`read_page()` holds rows in `page_cache`, sorted by `id`."),
        [user("ok fix it"), agent("ok")],
    ),
    (
        agent("`web` stores its `session_id` in `redis_pool`."),
        [agent("Now I'll change `web` to poll.")],
    ),
]


@pytest.mark.parametrize(("said", "after"), OVERTURNED, ids=lambda case: str(case)[:30])
def test_it_lets_later_turns_overturn_earlier_ones(
    said: tuple[str, str], after: list[tuple[str, str]]
) -> None:
    kept = distill(user("hm"), said, user("good"), agent("ok"))
    dropped = distill(user("hm"), said, *after)
    assert said[1] in [note.content for note in kept]
    assert said[1] not in [note.content for note in dropped]


def test_it_keeps_a_constraint_although_a_plan_beside_it_is_refused() -> None:
    constraint = "The gateway requires `X-Trace` on each call, `sendBatch` included."
    notes = distill(
        user("hm"), agent(constraint), user("hm, why do we use sendBatch?"), agent("You're right.")
    )
    assert [note.content for note in notes] == [constraint]


def test_it_keeps_the_last_of_two_values_and_never_lets_an_agent_overrule_a_person() -> None:
    old, new = (f"The upload limit must be {size} MB, set by `MAX_UPLOAD`." for size in (20, 50))
    assert [n.content for n in distill(user(old), agent("ok"), user(new), agent("ok"))] == [new]
    assert old in [n.content for n in distill(user(old), agent(new))]


def test_it_accepts_what_an_agent_proposes_in_giving_a_person_right() -> None:
    wish = user("i would think that `openDialog()` takes a function that builds the dialog?")
    proposal = "We can have `openDialog` take a factory, because `closeDialog()` is then one call."
    assert distill(wish, agent(proposal)) == []
    (note,) = distill(wish, agent(f"You're right. {proposal}"))
    assert note.content == proposal


def test_it_makes_no_note_of_what_an_agent_sees_between_two_tools() -> None:
    seen = "`Basket` has `price_net` but not `price_gross`. Let me look at the form:"
    assert distill(user("hm"), agent("I look at the shop."), agent(seen)) == []
    assert (
        distill(user("hm"), agent("ok"), agent("Good, only `Basket` uses `Cent`. Let me go on."))
        == []
    )


def test_it_takes_code_before_a_full_stop_for_the_end_of_a_sentence() -> None:
    rule = "The test database listens on port 5442, as user `dev`."
    (note,) = distill(user("hm"), agent(f"I added that to `docs/dev.md`. {rule}"))
    assert note.content == rule


def test_it_leaves_assent_and_refusal_out_of_the_title() -> None:
    (note,) = distill(user("hm"), agent("So yes, the worker owns `jobs.db` and must be alone."))
    assert note.content == "the worker owns `jobs.db` and must be alone."
    assert title_of("No, the API listens on port 8443").startswith("The API")


def test_it_makes_no_note_of_an_empty_unit() -> None:
    draft = Extractive().distill([], origin=Origin("distill"))
    assert draft.candidates == ()
    assert draft.usage.model_real == "extractive-1"


def test_it_quotes_the_question_with_an_elliptic_answer() -> None:
    question = "Should we move the queue from Redis to Postgres?"
    (note,) = distill(agent(f"Two ways are open. {question}"), user("Yes, do that."))
    assert note.content == note.source_ref == "Yes, do that."
    assert question.rstrip("?") in note.context
    assert "Redis" in note.title and len(note.title) <= TITLE_CHARS_MAX


def test_it_quotes_the_question_when_the_answer_names_one_of_two() -> None:
    (note,) = distill(agent("Keep the queue in Redis or move it to Postgres?"), user("Postgres."))
    assert "Redis" in note.context


def test_it_makes_no_decision_of_leave_to_go_on() -> None:
    assert (
        distill(agent("Phase 2 is there. Should I continue with phase 3 or stop?"), user("yes"))
        == []
    )


def test_it_reaches_back_over_what_a_pronoun_points_at() -> None:
    body = "The cache lives in `store.py`. It must never be cleared because readers crash."
    (note,) = distill(user("where is it?"), agent(body))
    assert note.content == body


def test_it_names_the_list_that_an_item_stands_in() -> None:
    items = "\n".join(
        f"- `option_{n}` is read by `worker_{n}` at start, a change needs a restart"
        for n in range(9)
    )
    notes = distill(user("how are options read?"), agent(f"Options of the mail worker:\n\n{items}"))
    assert notes and all("Options of the mail worker" in note.context for note in notes)


def test_it_does_not_keep_what_a_person_takes_back() -> None:
    proposed = "We will use `redis` for the lock instead of Postgres."
    kept = distill(user("the lock"), agent(proposed), user("good"))
    dropped = distill(user("the lock"), agent(proposed), user("no, that's wrong"))
    assert len(kept) == 1 and dropped == []


def test_it_keeps_one_of_two_sentences_that_say_the_same() -> None:
    notes = distill(
        user("We decided to use Postgres for the queue because Redis lost jobs."),
        agent("Let me see."),
        user("As I said: we decided to use Postgres for the queue, Redis lost jobs."),
    )
    assert len(notes) == 1


def test_it_notes_what_people_tell_of_themselves_and_not_their_greetings() -> None:
    told = "I moved to Berlin last month and started a new job at a bakery with my sister."
    bodies = [
        "Hey! How are you?",
        f"Good, thanks! {told}",
        "Wow, that's amazing!",
        "Bye, take care!",
    ]
    notes = distill(*map(user, bodies))
    assert [note.content for note in notes] == [told]
    assert notes[0].memory_kind == "episodic"


def test_it_makes_one_note_of_a_bookmark() -> None:
    body = (
        "pg_repack\nhttps://example.org/pg_repack\n\nRemoves bloat from tables without long locks."
    )
    (note,) = distill(user(body), kind="document")
    assert note.content == body and note.title == "pg_repack"


def test_it_says_under_which_heading_a_document_speaks() -> None:
    filler = "The weather was mild and the meeting room was warm. " * 10
    rule = "Always roll back with `make rollback`, never by hand."
    body = f"# Deploy\n\n{filler}\n\n## Rollback\n\n{rule}\n"
    (note,) = [n for n in distill(user(body), kind="document") if "rollback" in n.content]
    assert note.context == "Under: “Rollback”"


def test_it_yields_a_few_notes_of_a_unit_however_much_is_said() -> None:
    turns = [
        user(f"We decided to use tool{n} for job{n} because plan{n} failed on host{n}.")
        for n in range(60)
    ]
    assert 0 < len(distill(*turns, agent("Let me see."))) <= NOTES_MAX


def test_it_cuts_a_title_at_a_clause_and_never_inside_brackets() -> None:
    text = (
        "Keep the old readers (parse_one, parse_two, parse_three, parse_four, parse_five) until May"
    )
    title = title_of(text)
    assert len(title) <= TITLE_CHARS_MAX
    assert title.count("(") == title.count(")")
    assert not title.endswith((" ", ",", "…", "the", "and"))


VOCABULARY = """
we decided because always never `run()` port 8443 not Redis but Postgres . ? : - * # ```
我们决定 因为
。 It I my team yesterday don't use é ß ( ) -> 1. > | fix problem was yes
"""
words = st.sampled_from([*VOCABULARY.split(), "\n", "\n\n", "\t", "\u2028", "  "])
bodies = st.lists(words, max_size=60).map(" ".join) | st.text(max_size=300)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), bodies), max_size=8),
    st.sampled_from(["turn", "document"]),
)
def test_it_only_ever_quotes(turns: list[tuple[str, str]], kind: str) -> None:
    unit = passages(*turns, kind=kind)
    draft = Extractive().distill(unit, origin=Origin("distill"))
    assert draft == Extractive().distill(unit, origin=Origin("distill"))
    for note in draft.candidates:
        assert note.content == note.source_ref == note.content.strip()
        assert any(note.source_ref in passage.body for passage in unit)
        assert len(note.source_ref) <= SPAN_CHARS_MAX
        assert len(note.title) <= TITLE_CHARS_MAX
        assert len(note.context) <= CONTEXT_CHARS_MAX + 20


@settings(max_examples=150, deadline=None)
@given(bodies)
def test_it_cuts_a_body_into_ranges_of_it(body: str) -> None:
    for piece in cut(body):
        assert body[piece.start : piece.end] == piece.text


def test_it_takes_time_in_proportion_to_what_is_said() -> None:
    body = "The parser reads `a.toml` because the loader needs it. It is never written. " * 10

    def work(times: int) -> None:
        unit = passages(*[agent(body) for _ in range(times)])
        Extractive().distill(unit, origin=Origin("distill"))

    assert growth(work, 5) <= GROWTH_MAX


def test_it_is_not_slowed_by_a_hostile_body() -> None:
    signs = [
        "a",
        "(",
        "`",
        " ",
        "\t",
        "I don't ",
        "- ",
        "->",
        "\n",
        "we will ",
        "because ",
        "# ",
        "a.b",
    ]
    begun = time.process_time()
    for sign in signs:
        whole = sign * (60_000 // len(sign))
        distill(user(whole), user(f"# {whole}x"))
        distill(user(f"{sign * (500 // len(sign))}\n" * 100), agent("Let me see."))
    assert time.process_time() - begun < 30
