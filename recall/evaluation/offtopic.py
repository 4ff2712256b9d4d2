"""Prompts that no project's memory answers: whatever they bring up is a false injection.

Everyday knowledge, and work in general words about nothing in particular. Not the prompts that the
floors are set by; those are the operator's own.
"""

from __future__ import annotations

PROMPTS = (
    "How long do I boil an egg so that the yolk stays soft?",
    "Explain how a rainbow forms after a summer storm.",
    "What is the difference between an alpaca and a llama?",
    "Write a haiku about the first snow on a mountain lake.",
    "Which planets of the solar system have rings?",
    "How did the printing press change medieval Europe?",
    "Give me three stretching exercises against a stiff neck.",
    "Why does bread dough need to rest before it is baked?",
    "Translate 'the harvest was late this autumn' into Portuguese.",
    "Who composed the opera about the barber of Seville?",
    "What causes the northern lights, and where can I see them?",
    "How do bees decide where a swarm builds its new hive?",
    "Suggest a route for hiking along the Norwegian fjords.",
    "What is the rule for offside in association football?",
    "Describe the life cycle of a salmon in five sentences.",
    "How much water does a tomato plant need in July?",
    "Explain the Monty Hall problem to a ten-year-old.",
    "Which metals are attracted by a magnet and which are not?",
    "How were the pyramids of Giza oriented so precisely?",
    "What should I look for when buying a second-hand cello?",
    "Explain what a closure is in JavaScript with a tiny example.",
    "How do I reverse a linked list in place?",
    "What does the big O notation of merge sort look like?",
    "Write a regular expression that matches a British postcode.",
    "What is the difference between TCP and UDP?",
    "How do I undo the last commit without losing the changes?",
    "Explain the difference between a process and a thread.",
    "Show me how to centre a div with flexbox.",
    "How do I sort a list of dictionaries by two keys in Python?",
    "What is the purpose of a foreign key in a relational database?",
    "How does garbage collection work in the Java virtual machine?",
    "Write a Makefile rule that compiles every C file in a folder.",
    "What is a race condition, in one paragraph?",
    "How do I find the largest files below a directory?",
    "Wie wird das Wetter an der Nordsee im Herbst gewöhnlich?",
    "Quelle est la différence entre un crocodile et un alligator ?",
    "¿Cómo se prepara una tortilla de patatas para seis personas?",
    "日本の桜はいつ咲きますか。地域ごとに教えてください。",
    "Explain why the sky is blue but sunsets are red.",
    "Recommend a book about the history of the spice trade.",
)
